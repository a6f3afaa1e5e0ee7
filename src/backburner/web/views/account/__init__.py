"""Views of the settings, and of what operators see."""
