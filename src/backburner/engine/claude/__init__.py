"""Claude, through the Claude Agent SDK: one program for every turn, or one that is still warm."""
