"""Our side of sessions with MCP servers, over HTTP and with programs on this machine."""
