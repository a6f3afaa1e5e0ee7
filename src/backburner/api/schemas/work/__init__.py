"""Schemas about how and where work is done."""
