"""Commands for operators: models and logs."""
