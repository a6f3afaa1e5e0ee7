"""What `watch` reads from the server, and how it shows it."""
