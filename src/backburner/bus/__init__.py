"""Hints between processes: they name rows to read again, and carry no content."""
