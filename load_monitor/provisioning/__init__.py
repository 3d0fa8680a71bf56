"""Provisioners: who makes servers and machines, and takes them away.

contract    what every one of them promises, and `memory`, its twin
local       processes of this machine; machines are accounted shares of it
script      a script of yours, for any cloud
choosing    the one that elastic.toml names
"""
