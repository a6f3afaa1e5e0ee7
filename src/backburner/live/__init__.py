"""Live updates: the feed of changes, and drafts of replies."""
