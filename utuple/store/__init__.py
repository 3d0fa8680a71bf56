"""Where a server keeps uTuples: the contract, the in-memory twin, PostgreSQL."""
