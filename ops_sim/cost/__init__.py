"""What uTuples cost a server, and what that makes of many servers.

model.py         the cost model: seconds and bytes of one uTuple, as lines (figures 6 and 7)
calibration.py   measurements of a real server in, lines fitted to them, a cost model out
catalogue.py     cost models by name: the paper's, this machine's last calibration, a file
application.py   what an application asks (table 2), and the load that this is for a cost model
estimate.py      throughput and storage by the number of servers (figure 8)

`utuple plan calibrate` measures a server, fits a model and keeps it as cost.json; every other plan takes a model by its name, and
makes a `Load` of it and an application: the share of a server that so many devices use.
"""
