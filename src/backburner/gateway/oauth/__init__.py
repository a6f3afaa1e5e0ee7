"""OAuth 2.1: finding authorization servers, and requests to them."""
