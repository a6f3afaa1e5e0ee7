"""A house full of made-up people and their work, for pictures of the page and for its tests."""
