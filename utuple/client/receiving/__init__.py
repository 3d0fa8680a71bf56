"""What reaches a program: deliveries to watches and commands to devices.

`watch` and `device` open a `formal`; a formal has a `link` at each member, links share one `session` (a stream) to
a server. What comes is counted by `progress`, limited by `window`, freed of `repeats`, and handed out as
`deliveries`, one `delivery` each.
"""
