"""A study becomes a report: runs, notebooks, and a small site of pages."""
