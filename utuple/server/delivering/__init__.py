"""Delivering: how matches reach their readers, and commands their devices.

    cursor, cursors   how far each EF's reader has come and what it is sent next                     pure
    pending           live matches that wait for the end of a search                                 pure
    positions         how far readers have acknowledged                                              pure
    acknowledged      which commands devices acknowledged at servers that were drained since           pure
    devices           attached CFs, their windows, and which commands each was given                 pure
    fleeting          matches of lifetime 0 for a reader that is away for a moment                   pure
    outbox            what waits to be written to one stream, joined as it leaves                    pure
    absent/           readers that come and go, and what is dropped meanwhile
    reading/          what is searched in the store for readers, one by one or together
    sharing/          deliveries that are settled one by one, by one program or by several
    chores            what delivery adds to the next transaction
    streams           readers' streams and their outboxes
    handover          one command's way to its devices, and who waits for it
    dispatcher        carries out what the cursors decide: streams, stored searches, news of lines
    commands          finds the devices of a command by a search, family by family

A commit's matches go from the writer to `dispatcher.committed`, through `cursors` (who is sent what, who falls behind)
into `outbox`, and from there to the stream in the same turn of the event loop if it has room. Who may attach is judged
by `utuple.delivery.attachments`, as an sCA server does.
"""
