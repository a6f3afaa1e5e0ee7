"""The queue: claiming turns, holding them, rescuing them, and what waits to be served."""
