"""Commands for your own account: settings, spend, sessions."""
