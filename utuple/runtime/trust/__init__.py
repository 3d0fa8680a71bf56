"""What every program of a secured cluster has: who may call it, and the grants it judges by.

guard       holds the grants and the program's own credentials; asked before every call (`authorise`), and by handlers for
            their caller
auditing    the program's audit: what was decided here, appended to a file
service     the calls of `Trust`, which every program answers
tls         the credentials as the transport takes them
"""
