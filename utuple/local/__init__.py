"""A whole cluster as processes of this machine, in one data folder: started, kept alive, stopped."""
