"""MCP servers for tests: those of others as real processes, and our own, good and bad."""
