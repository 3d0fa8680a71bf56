"""A server that was killed serves again."""
