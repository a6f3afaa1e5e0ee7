"""Rules of the channels on which people are told."""
