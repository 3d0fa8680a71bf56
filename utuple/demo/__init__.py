"""`utuple demo`: a cluster at work, one of its servers killed; a hot key that gets help; every delivery checked."""
