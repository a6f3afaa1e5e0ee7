"""What people watch as it happens: the feed of changes, and drafts of replies."""
