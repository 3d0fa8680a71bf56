"""The load monitor: watches the servers' load, plans moves and drives them."""
