"""An actuator program: an air conditioner that takes commands to its power switch. No event loop needed.

python examples/aircon.py --at 127.0.0.1:7400 --room room-101
python examples/switch_off.py --at 127.0.0.1:7400 --room room-101      # in another terminal
"""

from __future__ import annotations

import argparse
import contextlib

import utuple


def main(at: str, room: str) -> None:
    with (
        utuple.blocking.connect(at) as space,
        space.serve(
            subject="aircon",
            type="power",
            address=room,
            position=(35.68, 139.76),
            where={"on": bool},
        ) as commands,
    ):
        print(f"the air conditioner of {room} waits for commands; Ctrl-C ends this")
        for command in commands:
            print(f"switched {'on' if command.data['on'] else 'off'} (command {command.id})")
            command.ack()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--at", default="127.0.0.1:7400", help="any assignment manager")
    parser.add_argument("--room", default="room-101")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        main(given.at, given.room)
