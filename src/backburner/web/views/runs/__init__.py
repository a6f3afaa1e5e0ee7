"""Runs: the page of one, its waterfall, and lists of what runs and ran."""
