"""Work as people see it: tasks, jobs, proposals, discovery, and what they cost."""
