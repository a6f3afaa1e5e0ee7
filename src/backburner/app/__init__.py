"""The composition root: settings in, a running program out."""
