"""Commands that show runs, and what is to come."""
