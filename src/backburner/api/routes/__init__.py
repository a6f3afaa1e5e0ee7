"""Endpoints, one module per path prefix; each has a `router`."""
