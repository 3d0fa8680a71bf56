"""The site of docs/: `make docs` builds it, tests/browser/test_site.py opens every page.

hooks        MkDocs's: README, CHANGELOG, CONTRIBUTING and the examples are pages, too
reference    docs/reference/ from the code: `python -m tests.site`, or `make reference`
recording    docs/demo.svg from a real run of the demo: `python -m tests.site.recording`, or `make recording`
"""
