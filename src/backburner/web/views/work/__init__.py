"""Views of the pages of tasks, jobs and the calendar."""
