"""The benchmark `overload`: three times what a server can carry, for a minute."""
