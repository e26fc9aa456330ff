"""A report as a small site: pages that need no kernel, no network and no script.

`pages` writes them, `matrix` says what the index tells of models and benchmarks, `downloads` what a reader takes away.
"""

from pathlib import Path

HOME = Path(__file__).parent
