"""Views of runs, of what is to come, and of jobs."""
