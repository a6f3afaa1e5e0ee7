"""Tables, examples and snapshots that several tests share."""
