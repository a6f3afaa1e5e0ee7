"""Routes of the page: shells that show nothing of any user, and fragments for who is signed in."""
