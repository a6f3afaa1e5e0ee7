"""Doubles: a set clock, a scripted engine, a recording channel, tools that count."""
