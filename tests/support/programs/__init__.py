"""Real programs that tests start, and how they are found and ended."""
