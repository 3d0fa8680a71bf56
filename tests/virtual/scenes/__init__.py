"""The second part of a seed, in the calm: scenes that chance alone would seldom play, one at a time.

Nobody else disturbs them, so what each expects is exact. A seed plays some of them, a mutant all (`run.py`). Events:

    newcomers            many watches at once, and events that live for less than their searches
    short_lived          events that live for fractions of a second, while a reader's connections break
    passed_by            a reader whose lifetime is over when it comes back
    held_up              a stream that is held up until its EFs fall behind
    coming_and_going     a reader with a drop policy that comes and goes (law 9)
    sharing              two programs that share a reader, and an event that is always refused
    cancelled_elsewhere  an EF of a connected reader, cancelled by another
    order                one address, one order, while the line stands still
    fleeting             events of lifetime 0, and servers that are killed right after
    partitioned          a line that is partitioned, loses an owner and is gathered
    pruned               the same in a section with nothing of earlier layouts, so that EFs leave members out

Commands:

    fleeting_commands    of lifetime 0, to an area
    waiting_commands     which wait for a device
    commands_again       which come again and again while searches take long
    shared_out           sCA servers that join, leave and die while commands flow

To the server that has what a scene is about:

    sending_off          it goes off, and may be drained

Assignment managers:

    directories          at rest they agree, and again after a start from nothing
"""
