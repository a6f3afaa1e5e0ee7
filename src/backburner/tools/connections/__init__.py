"""Tools of connections, as agents get them in a run."""
