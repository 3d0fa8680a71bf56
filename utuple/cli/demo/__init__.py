"""`utuple demo`: a cluster of three servers at work, one of them killed, every delivery checked."""
