"""The benchmark `single`: many coroutines that each wait for one event at a time."""
