"""How items come to be: sheets for people out and back in, rounds of judgement, and a data folder at the end.

State is plain files in one project folder, so that people can stop and go on for weeks. A model is a function that the
caller gives; this room knows `data` and `metrics` alone.
"""
