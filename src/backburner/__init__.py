"""Conversations that keep working after you stop typing."""

__version__ = "0.1.0"
