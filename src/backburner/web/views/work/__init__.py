"""What pages of tasks, jobs and the calendar show."""
