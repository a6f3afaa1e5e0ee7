"""Schemas of what operators do."""
