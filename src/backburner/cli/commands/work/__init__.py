"""Commands for the work of a conversation."""
