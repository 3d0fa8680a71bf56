"""The HTTP door: the verbs of the SDK for any language and for a browser, what operators look at and do, and the console.
`python -m utuple.doors.http --help` starts one; `utuple up` does, too.

What comes in passes through these parts:

    listening       uvicorn: connections, their limits, an ordered stop
    app             routes; guarding: who may ask at all (other sites in a browser may not)
    problems        errors as problem+json, by what the caller can do now
    streaming       answers that last: bounded, and a client that stops reading is dropped
    verbs/          /v1/events, /v1/commands, /v1/devices: what they ask of the space
    operators/      /v1/status and its kin, orders, /metrics; one observer for all open pages
    openapi/        the document at /openapi.json, beside the routes it describes
    console/        the pages, as files

A door is a client of the public SDK, and looks at the cluster as the command line does (`utuple.admin`).
"""
