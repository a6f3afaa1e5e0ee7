"""Work that waits for its user: for a sign-in, or for what a server asks of them."""
