"""The users of the cluster under chaos: sensors, watchers and devices, each a process that writes down what
it asked for, what it was answered and what it got. They use the public SDK only."""
