"""CBBQ: multiple-choice questions about social groups in Chinese."""
