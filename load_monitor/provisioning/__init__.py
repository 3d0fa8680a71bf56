"""Provisioners: who makes servers and machines, and takes them away.

contract    what every one of them promises, and `memory`, its twin
local       processes of this machine; machines are accounted shares of it
script      a script of yours, for any cloud
stateful_set  Kubernetes: replicas of a StatefulSet; machines by NodeClaims of Karpenter, where the cluster has it
choosing    the one that elastic.toml names
"""
