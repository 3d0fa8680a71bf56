"""The benchmark `partition`: a hot key with many EFs, on four members, under help and partitioned."""
