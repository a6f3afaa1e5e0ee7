"""The vault: seals secrets, and keeps the master keys. The only room that knows cryptography."""
