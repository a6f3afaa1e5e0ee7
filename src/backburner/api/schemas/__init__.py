"""Request and response bodies, one module per noun."""
