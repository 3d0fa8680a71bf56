"""The benchmark `storage`: bytes an EA takes on disk."""
