"""One run, from its claim to its commit: prepare, perform, gate, finish."""
