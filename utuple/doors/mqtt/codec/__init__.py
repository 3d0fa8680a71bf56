"""Bytes and packets, MQTT 3.1.1 and 5, both ways; and the rules for names and filters. Pure.

`reading` and `writing` go between bytes and `packets` by the `fields` that both are made of; whatever breaks a rule is a
`ProtocolError` with one of the `reasons`.
"""
