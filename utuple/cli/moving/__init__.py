"""The operator's hand on the load: servers are added, helped and drained, and moves are looked at."""
