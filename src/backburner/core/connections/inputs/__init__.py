"""Requests of servers to users during calls: which are passed on, and the answers."""
