"""Several sCA servers share the devices out (section 3.2 of the paper); shares move when one joins, leaves or dies.

    membership     who the sCA servers are, as this one knows them                                       pure
    tenure         which devices this one may speak for, while the others change                         pure
    awake          the time they go by: pauses in which this program stood still do not count               pure
    sorting        which commands of a batch it may answer, and which have to be sent again               pure
    meeting        meets the others, and acts when they change: tells readers and managers, reads again

Whose a device is by a list of names is `utuple/cluster/shares.py`, for clients as for servers. A change passes meeting → membership
(is it one?) → tenure (what may be said meanwhile) → readers, who move, and refilling, which reads what became ours.
"""
