"""The HTTP way in: one file per path prefix."""
