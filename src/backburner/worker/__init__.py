"""The worker: one chore per file, each with `run_once()`, and one timer."""
