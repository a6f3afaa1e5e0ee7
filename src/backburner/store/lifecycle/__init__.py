"""Opening, migrating, checking, backing up and restoring a database."""
