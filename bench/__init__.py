"""bench: measure social bias in language models with McBE, CBBQ and NLI-CoAL.

    from bench import run
    result = run.evaluate("cbbq", "tiny:s", limit=20)
    result.scores()

Rooms in the order of the data: `data`, `tasks`, `scorers`, `records`, `metrics`, `figures`.
"""

__version__ = "0.2.0"
