"""Servers in the configuration files of other MCP clients, and what of them can be taken over."""
