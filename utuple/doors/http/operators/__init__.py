"""What operators look at and do.

observing   one observer looks at the cluster for everybody; pages get what has changed
parts       a snapshot as the parts of a page, and what changed in them           pure
looking     /v1/status, table, moves, readers, servers; /metrics, /healthz, /readyz
acting      orders: add, help, drain, forget; each can be tried with dry_run
planning    /v1/plan: scenarios, simulations, the forecast
"""
