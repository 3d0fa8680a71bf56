"""`utuple bench gossip`: what a ring of assignment managers costs while nothing happens, and how fast news travels."""
