"""Scores: pure functions from data frames to data frames or NamedTuples; models are not needed."""
