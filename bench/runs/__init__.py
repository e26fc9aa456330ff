"""Runs on disk: their answers, outcomes, scores and models."""
