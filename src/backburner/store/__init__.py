"""The database. The only package that knows a table; synchronous, one function a transaction."""
