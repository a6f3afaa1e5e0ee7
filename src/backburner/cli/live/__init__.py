"""Events that `watch` reads from the server, and their view."""
