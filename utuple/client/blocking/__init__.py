"""The blocking face: the asynchronous space, run by a thread of its own.

`space` has the verbs, `worker` the thread with its event loop, `signatures` makes their help read without await.
"""
