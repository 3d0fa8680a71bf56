"""What tests have left in a cluster is removed, without starting anything anew.

EFs of named readers and CAs that still wait are in a server's memory too, so they are cancelled by a call, as their owners would
cancel them. Stored EAs are only rows: they are deleted where they lie. What unnamed readers and devices had registered went
when their programs closed it.
"""

from __future__ import annotations

import asyncio

from utuple.admin import transport
from utuple.errors import Unavailable
from utuple.local.running import Cluster
from utuple.model.key import key_of
from utuple.store.postgres.emptying import delete_events, templates_in
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire


async def empty(running: Cluster) -> None:
    answer = await transport.first_table_of(running.managers)
    lines = list(map(line_from_wire, answer.lines))

    def cancel(id_: bytes, subject: str, type_: str) -> pb.Cancel:
        key = key_of(subject, type_)
        epoch = next(line.epoch for line in lines if key in line.section)
        return pb.Cancel(id=id_, family=pb.Family(subject=subject, type=type_, epoch=epoch))

    for server in running.servers:
        left = await asyncio.to_thread(templates_in, running.dsn_of(server))
        if left:
            cancels = [cancel(*template) for template in left]
            refusals = await transport.cancel(running.address_of(server), cancels)
            if refusals:
                raise Unavailable(
                    f"{server} does not forget what earlier tests left: {refusals[0]}"
                )
        await asyncio.to_thread(delete_events, running.dsn_of(server))
