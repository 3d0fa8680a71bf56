"""Moving load: help, split, drain and release, as one server takes part in them.

`rules` decides in the writer's order (pure), `apply` does it to what the writer holds, `steps` are the messages.
The home's `driver` calls the other `servers`; `teaching` brings templates to a learner, `delta` what changed
meanwhile, `shipping` the rows of who is drained.
"""
