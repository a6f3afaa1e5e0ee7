"""Routes for operators, and the models that they set up."""
