"""Behaviour suites that every engine and every store must pass."""
