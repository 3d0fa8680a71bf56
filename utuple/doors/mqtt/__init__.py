"""The MQTT door: devices and applications that speak MQTT 3.1.1 or 5, over TCP or WebSocket, use the space with the client
they have. `python -m utuple.doors.mqtt --help` starts one; any number of them may run.

What comes in passes through these parts:

    connection, websocket   bytes of one client                                         shell
    codec/                  bytes <-> packets, both versions                            pure
    protocol/               what a client may and does: step(event, now_s) -> effects   pure
    mapped/                 names and payloads <-> uTuples (mapping.toml has the rules) pure
    door, client, last_will sessions by client id, their effects carried out            shell
    emitting, sent_again,
    subscribing,            what the door asks of the space: events and commands,
    retaining, remembering  subscriptions, retained messages, kept sessions             shell

Words such as topic and broker are MQTT's own and stay inside this folder.
"""
