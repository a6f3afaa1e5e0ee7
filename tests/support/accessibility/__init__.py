"""Checks of what a page is for who cannot see it, or sees it narrow or large."""
