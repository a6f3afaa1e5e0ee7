"""Schemas of the history of a conversation."""
