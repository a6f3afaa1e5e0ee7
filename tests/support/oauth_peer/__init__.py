"""An MCP server that wants a sign-in, and its authorization server: both with the code of `mcp`."""
