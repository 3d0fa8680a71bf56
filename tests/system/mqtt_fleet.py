"""Thousands of paho clients in one thread, by a selector; they go on at the next door when one is gone."""

from __future__ import annotations

import selectors
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

_TICK_S = 0.02
_MISC_S = 5.0
_AGAIN_S = 0.5


class Member:
    """One client: what it asked for, what it sent and what it was given."""

    def __init__(self, name: str, *, kept: bool) -> None:
        self.client = Client(
            CallbackAPIVersion.VERSION2, name, protocol=MQTTv311, clean_session=not kept
        )
        self.client.max_inflight_messages_set(20)
        self.filters: list[tuple[str, int]] = []
        self.came: Counter[tuple[str, bytes]] = Counter()
        self.is_ready = False
        """Connected, and subscribed to all it asked for."""
        self.is_connected = False
        self.waiting = 0
        """Messages that are published and not acknowledged."""
        self.log: list[tuple[float, str]] = []
        """What happened to its connection, for who asks why something did not come."""
        self.again_s = 0.0
        client = self.client
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self.waiting += 1
        self.client.publish(topic, payload, qos)

    def _on_message(self, client: Client, _: object, message: MQTTMessage) -> None:
        self.came[message.topic, bytes(message.payload)] += 1

    def _on_publish(self, *_: Any) -> None:
        self.waiting -= 1

    def _on_connect(self, _: Client, __: object, flags: Any, reason: Any, ___: object) -> None:
        self._note(f"CONNACK {reason}, session {'present' if flags.session_present else 'new'}")
        self.is_connected = True
        if self.filters:
            self.client.subscribe(self.filters)
        else:
            self.is_ready = True

    def _on_subscribe(self, _: Client, __: object, ___: int, reasons: Any, ____: object) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        self._note(f"SUBACK {refused or 'granted'}")
        self.is_ready = not refused
        if refused:  # a server is down
            self.client.subscribe(self.filters)

    def _on_disconnect(self, _: Client, __: object, ___: object, reason: Any, ____: object) -> None:
        self._note(f"gone: {reason}")
        self.is_connected = self.is_ready = False

    def _note(self, what: str) -> None:
        self.log.append((round(time.monotonic(), 2), what))


class Fleet(threading.Thread):
    def __init__(self, members: Sequence[Member], ports: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.members = list(members)
        self.ports = list(ports)
        """Doors, changed from outside; a member takes the next one each time."""
        self.lock = threading.Lock()
        """Held while clients are driven: who publishes from outside takes it."""
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[Member, Any] = {}
        self._turn = 0
        self._over = threading.Event()

    def run(self) -> None:
        misc_s = time.monotonic()
        while not self._over.is_set():
            with self.lock:
                self._connect_those_without()
                for key, mask in self._selector.select(_TICK_S):
                    self._drive(key.data, mask)
                if time.monotonic() - misc_s > _MISC_S:
                    misc_s = time.monotonic()
                    for member in self._sockets:
                        member.client.loop_misc()
                self._watch_writers()
            time.sleep(0)

    def stop(self) -> None:
        self._over.set()
        self.join()
        for member in self.members:
            member.client.disconnect()

    def _connect_those_without(self) -> None:
        now_s = time.monotonic()
        # All that are closed first: a new socket may get the number of one of them.
        for member in [one for one in self._sockets if one.client.socket() is None]:
            self._drop(member)
        for member in self.members:
            if member in self._sockets or now_s < member.again_s:
                continue
            self._turn += 1
            port = self.ports[self._turn % len(self.ports)]
            try:
                member.client.connect("127.0.0.1", port, keepalive=60)
            except OSError:
                member.again_s = now_s + _AGAIN_S
                continue
            sock = member.client.socket()
            self._sockets[member] = sock
            self._selector.register(sock, selectors.EVENT_READ, member)

    def _drop(self, member: Member) -> None:
        self._selector.unregister(self._sockets.pop(member))
        member.is_connected = member.is_ready = False
        member.again_s = time.monotonic() + _AGAIN_S

    def _drive(self, member: Member, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            member.client.loop_read()
        if mask & selectors.EVENT_WRITE and member.client.socket() is not None:
            member.client.loop_write()

    def _watch_writers(self) -> None:
        for member, sock in self._sockets.items():
            if member.client.socket() is None:
                continue
            writes = selectors.EVENT_WRITE if member.client.want_write() else 0
            wanted = selectors.EVENT_READ | writes
            if self._selector.get_key(sock).events != wanted:
                self._selector.modify(sock, wanted, member)
