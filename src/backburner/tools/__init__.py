"""What the agent may call: thin over actions and machines, each tool defined once."""
