"""The protocol of one client: what it may (`greeting`), what happens then (`session`), what is on its way to it
(`outgoing`). Pure: events in, effects out, time is an argument.
"""
