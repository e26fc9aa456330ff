"""Respondents that stand in for a model: recorded answers, simulated people, small trained models."""
