"""Agents: each library in its own room, all behind one port."""
