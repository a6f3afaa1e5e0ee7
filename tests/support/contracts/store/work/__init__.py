"""Promises about jobs, folders, and what runs now."""
