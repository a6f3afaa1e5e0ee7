"""Places where users are told. A folder each; to make one, copy one.

Each passes the suite in `tests/support/contracts/channel`.
"""
