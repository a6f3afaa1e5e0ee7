"""Rows of each table group: insert, load, update. Every lookup has the owner in its key."""
