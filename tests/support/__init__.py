"""Test support: doubles, stages, contracts, fault injection. Nothing here ships."""
