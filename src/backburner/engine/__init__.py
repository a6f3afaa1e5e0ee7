"""Agents: one folder for each library, all behind one port."""
