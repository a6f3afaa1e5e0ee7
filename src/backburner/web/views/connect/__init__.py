"""What pages of connections and folders show."""
