"""Connections to MCP servers: add, show, change, sign in, accept and tick tools, remove."""
