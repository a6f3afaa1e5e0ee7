"""One file for each revision, numbered in order; none is changed once it was released."""
