"""`utuple elastic`: what elasticity does now (status), what it would do (plan), and what it would have done (simulate)."""
