"""Imported first by the server that copies processes, so that its other imports are fast."""

from bench.core.process import collect_rarely

collect_rarely()
