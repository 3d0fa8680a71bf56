"""EFs that come and go while EAs flow."""
