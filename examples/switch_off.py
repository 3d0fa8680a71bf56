"""An application: switches off one air conditioner, or with --all every one within 500 m, and says who got it.

python examples/switch_off.py --at 127.0.0.1:7400 --room room-101
python examples/switch_off.py --at 127.0.0.1:7400 --all
"""

from __future__ import annotations

import argparse
import sys

import utuple
from utuple import Circle


def main(at: str, room: str, everywhere: bool) -> int:
    with utuple.blocking.connect(at) as space:
        if everywhere:
            receipt = space.command(
                subject="aircon",
                type="power",
                area=Circle(35.68, 139.76, 500),
                data={"on": False},
            )
        else:
            receipt = space.command(
                subject="aircon", type="power", address=room, data={"on": False}
            )
        print(receipt)
        return 0 if receipt.handed_over else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--at", default="127.0.0.1:7400", help="any assignment manager")
    parser.add_argument("--room", default="room-101")
    parser.add_argument("--all", action="store_true", help="every one within 500 m")
    given = parser.parse_args()
    sys.exit(main(given.at, given.room, given.all))
