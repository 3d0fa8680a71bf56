"""A real PostgreSQL in a folder, for clusters on this machine: nothing to install.

`embedded` starts and stops it; around it lie the programs of the wheel (`binaries`), the `folder`, the `process`
that runs there, as whom it runs (`identity`), its `config`, `socket` and `databases`.
"""
