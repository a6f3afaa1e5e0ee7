"""Content that is not text: files, images and their names."""
