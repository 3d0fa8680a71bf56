"""What every program needs around its core: clock, serving, logs, and an embedded PostgreSQL."""
