"""The benchmark `client`: what the SDK costs its process."""
