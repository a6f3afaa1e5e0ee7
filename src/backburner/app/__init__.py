"""Where the parts meet: settings in, a running program out. Only here do the machines meet."""
