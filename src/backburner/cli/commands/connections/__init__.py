"""Commands for connections to MCP servers."""
