"""Claude, through the Claude Agent SDK: a program of its own for every turn that is not warm."""
