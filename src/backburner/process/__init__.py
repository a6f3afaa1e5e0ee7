"""Child process trees: start clean, watch, end with everything they started."""
