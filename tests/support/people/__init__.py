"""Users, tokens and clients that act in tests."""
