"""The room of numbers: pure functions, frame in, frame or NamedTuple out. No torch, no models.

A benchmark's metrics module has `score_records(records, items, preset)`, which gives the score table of a run, and
`CARDS`, what each metric means.
"""
