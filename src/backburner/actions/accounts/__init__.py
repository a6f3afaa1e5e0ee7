"""Accounts: sign-in, passwords, tokens, users, profiles."""
