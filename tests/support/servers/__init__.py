"""Servers on loopback for tests."""
