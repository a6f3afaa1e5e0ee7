"""Addresses in URLs."""


def host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
