"""Views of the pages of connections and folders."""
