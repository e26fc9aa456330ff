"""Helpers of all packages: errors, files, text, numbers and progress."""
