"""A real browser for tests; the only package that knows playwright."""
