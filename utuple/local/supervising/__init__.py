"""The cluster of a data folder, as `utuple up` has it: it lasts, and is found again.

supervisor   keeps the folder's cluster alive until it is told to stop, and changes it on request
daemon       the supervisor as a process of its own; starting one, and waiting until its cluster is ready
stopping     `utuple down`: ask the supervisor, then see that nothing is left
requests     what a running supervisor is asked for, through files in the folder; growing carries it out
reuse        what was asked for against what the folder already holds
registry     which folder the cluster at an address has
"""
