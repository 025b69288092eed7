"""Random searches around classes of faults that were found: many cases of one kind, compared with an oracle.

Each module of this package but the runner and the report is one search, with

    SUMMARY: str                          one sentence for the page
    COUNT, SAMPLE: int                    cases of a full search, and of the sample in the test suite
    search(count, seed) -> Outcome        draw and check `count` cases

A test of the suite runs a small seeded sample of each; `python -m tests.searches` runs them in full.
"""
