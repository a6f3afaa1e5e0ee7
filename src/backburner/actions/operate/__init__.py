"""Actions of operators on the whole install."""
