"""What happened in a conversation."""
