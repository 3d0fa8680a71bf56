"""`utuple metrics`: the cluster for Prometheus."""
