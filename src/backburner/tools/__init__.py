"""Tools of the agent: thin over actions and machines, each defined once."""
