"""The commands; `cli/main.py` maps each name to its module."""
