"""`utuple.blocking.connect(...)`: the same verbs without `await`, from the same core."""

from utuple.client.blocking import BlockingDeliveries, Delivery, Space, connect

__all__ = ["BlockingDeliveries", "Delivery", "Space", "connect"]
