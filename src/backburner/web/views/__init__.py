"""Views: the values that templates show, computed from what actions return. No I/O here."""
