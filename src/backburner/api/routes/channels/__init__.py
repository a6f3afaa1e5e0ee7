"""Routes of the channels on which users are told."""
