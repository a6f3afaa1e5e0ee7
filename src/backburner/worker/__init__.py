"""What keeps things going: one chore a file, each with `run_once()`; one timer for all."""
