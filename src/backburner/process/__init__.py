"""Child process trees: started clean, confined, and ended with all their descendants."""
