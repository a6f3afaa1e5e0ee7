"""The models that conversations use."""
