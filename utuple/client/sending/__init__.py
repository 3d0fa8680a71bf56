"""From a caller's values to calls.

    emit, command_many       build slices of columns (`rows`) from mappings, and keep some slices in flight (`pipeline`)
    command                  one CA: to every member, or as a simple command to an sCA server (`simple_commands`)
    batcher                  what callers submit for one server leaves together, from one `send_queue` for each server
    cut_short                calls that go on though their callers were cancelled: a goodbye waits for them
    receipt                  what became of a command, device by device

An event passes emit → rows → `routing.registrar`, which chooses the server → batcher → send_queue → transport.
"""
