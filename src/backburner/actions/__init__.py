"""Verbs: everything the product can do, once. Each change is one transaction, owner-scoped."""
