"""python -m tests.walks: prints the four walks."""

from __future__ import annotations

import asyncio
import sys

from tests.walks.page import page
from tests.walks.walking import walks

if __name__ == "__main__":
    sys.stdout.write(page(asyncio.run(walks())))
