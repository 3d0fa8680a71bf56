"""`utuple bench elastic`: servers that come and go with the load, on this machine, and whoever asks them notices nothing."""
