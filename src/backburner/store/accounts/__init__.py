"""Users, their credentials, sign-in rate limits, MCP clients, and personal data."""
