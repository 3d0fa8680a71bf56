"""The client SDK: hashes, looks up, routes, batches, retries, delivers; asynchronous and blocking.

space         the verbs of the public face, made by connecting; arguments checks what a user writes (pure)
sending/      events and commands on their way out
routing/      which server, and what is done when it does not answer
receiving/    watches and devices: deliveries on their way in
reading/      stored matches
blocking/     the same verbs without await
transport     the seam to the network; parts is what every verb works with
config        every knob and limit
"""

from utuple.client.connecting import connect
from utuple.client.receiving.delivery import Delivery
from utuple.client.receiving.device import Device
from utuple.client.receiving.drops import Drop
from utuple.client.receiving.watch import Watch
from utuple.client.sending.receipt import DeviceReceipt, Receipt, Receipts
from utuple.client.space import Space

__all__ = [
    "Delivery",
    "Device",
    "DeviceReceipt",
    "Drop",
    "Receipt",
    "Receipts",
    "Space",
    "Watch",
    "connect",
]
