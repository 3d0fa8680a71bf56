"""The benchmark `growth`: what an EA costs as the store and the EFs grow."""
