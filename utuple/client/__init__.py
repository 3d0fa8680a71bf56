"""The client SDK: hashes, looks up, routes, batches, retries, delivers; asynchronous and blocking."""

from utuple.client.receiving.delivery import Delivery
from utuple.client.receiving.device import Device
from utuple.client.receiving.watch import Watch
from utuple.client.sending.receipt import DeviceReceipt, Receipt, Receipts
from utuple.client.space import Space, connect

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
