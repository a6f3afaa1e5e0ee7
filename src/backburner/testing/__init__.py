"""For tests: values with defaults, doubles of machines, and the suites that machines must pass."""
