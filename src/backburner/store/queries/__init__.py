"""Read-only lists and counts: pages, summaries, metrics."""
