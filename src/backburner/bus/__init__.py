"""Hints between processes: where to look, never what is there."""
