"""What a uTupleServer and an sCA server have in common when they deliver. Pure, and imports the model alone.

    attachments   which stream holds which formal, and who has a say in that when two programs use one reader's name
    notice        what a reader is told about its formals
    handed        what became of a command at one device
    recent        ids of late, in bounded memory

The rest differs, and stays with each: a uTupleServer's cursors read the store, an sCA server has pairs of command and
device and nothing stored (docs/decisions/0020-one-core-for-attaching.md).
"""
