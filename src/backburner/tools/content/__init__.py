"""Tools for content: results that were kept, attached files, and files for the user."""
