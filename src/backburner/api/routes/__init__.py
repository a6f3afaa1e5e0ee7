"""The endpoints, one module per path prefix."""
