"""Push messages to browsers, also while no page is open."""
