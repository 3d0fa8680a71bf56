"""Spark on this machine or on a cluster.

java.py        finds a Java that Spark runs on
session.py     the session: quiet, on loopback unless told otherwise, gone with its folder when it ends
interrupt.py   Ctrl-C while the JVM works
"""
