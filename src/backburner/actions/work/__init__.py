"""Tasks and jobs: create, find, change, pause, resume, preview, wait for."""
