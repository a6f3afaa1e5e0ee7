"""Fault injection: a program that halts where it is told, proxies that lose answers, invariants."""
