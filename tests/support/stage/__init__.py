"""Stages: the product on a real database with a scripted agent."""
