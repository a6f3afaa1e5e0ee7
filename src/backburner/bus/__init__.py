"""Hints between processes: what to read again, never its content."""
