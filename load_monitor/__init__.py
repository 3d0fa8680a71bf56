"""The load monitor: watches the servers' load, plans moves and orders them at the homes.

Once every second, by the poller:

    transport   asks a manager for the table and every server for its status (wire turns that into reports)
    observing   builds a snapshot of the cluster from the reports: loads smoothed by window, moves under way and past
    planning    plans moves from the snapshot, and advice for the operator
    transport   orders each move at the home of its section

`service` says what the monitor sees and does; `recorder` keeps what it saw as telemetry. Nothing that matters is kept here:
a monitor that dies changes nothing but that no new move starts.
"""
