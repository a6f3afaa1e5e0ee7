"""Connections of users to MCP servers, and the tools that they bring."""
