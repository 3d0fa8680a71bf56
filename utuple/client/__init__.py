"""The client SDK: hashes, looks up, routes, batches, retries, delivers; asynchronous and blocking."""

from utuple.client.delivery import Delivery
from utuple.client.receipt import DeviceReceipt, Receipt, Receipts
from utuple.client.serving import Device
from utuple.client.space import Space, connect
from utuple.client.watching import Watch

__all__ = [
    "Delivery",
    "Device",
    "DeviceReceipt",
    "Receipt",
    "Receipts",
    "Space",
    "Watch",
    "connect",
]
