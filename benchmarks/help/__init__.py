"""The benchmark `help`: what users notice while a hot key gets a helper."""
