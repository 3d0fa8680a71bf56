"""For the tests of programs that use uTupleSpace: a real cluster as pytest fixtures (docs/testing.md).

plugin     the fixtures; pytest loads it by itself, so it imports nothing heavy before a test asks for one
cluster    the cluster as a test sees it: a process of its own, which ends when the test process does, however that ends
hosting    that process
emptying   what tests have left in a cluster is removed
"""
