"""`utuple.blocking.connect(...)`: the same verbs for programs without an event loop, from the same core."""

from utuple.client.blocking.space import Delivery, Device, Reading, Space, Watch, connect
from utuple.client.sending.receipt import DeviceReceipt, Receipt, Receipts

__all__ = [
    "Delivery",
    "Device",
    "DeviceReceipt",
    "Reading",
    "Receipt",
    "Receipts",
    "Space",
    "Watch",
    "connect",
]
