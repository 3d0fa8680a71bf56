"""The programs of a cluster in virtual shells: what each `__main__` does, with virtual parts where it would meet the machine.

cluster      processes with lives, crashes and restarts, on one network
servers      uTupleServers and assignment managers
sca          sCA servers
monitor      load monitors
elastic      what makes and removes servers, and the cloud that answers late, twice or never
clients      programs with the whole SDK, which do what the plan says and tell the history
trust        a secured cluster: an authority, an operator who changes grants, a guest and those who have no right
at_doors     doors of it, and one that was stolen
rivals       one of it who may do everything and tries to cancel what is another's
"""
