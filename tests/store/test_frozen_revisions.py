"""Revisions that people's databases have been through: they stay as they are, to the letter.

A database that has one never sees it again, so what is changed in it reaches only new ones. A
change of the tables is a new revision; it joins the list once it has been released.
"""

import hashlib

import pytest

from backburner.store.lifecycle.schema import MIGRATIONS

VERSIONS = MIGRATIONS / "versions"
FROZEN = {
    "0001_first_tables.py": "f02f20b81e621cb6f1d07ab7ed1a0b69667a9decf71058085759cb3ae84c69f1",
    "0002_engines_and_allowances.py": (
        "c0132d6eaaf7cb11233bc290e972683c383311d9aeecfd3f1b77fe3753f90e04"
    ),
    "0003_sessions_and_profiles.py": (
        "c47d96619004189c274cbac36c5b152c3cc32d320e9b537ce56e35bbe95ede7a"
    ),
    "0004_accounts.py": "89e65d6a08bedf530ae40aa99b97b551bc53e046a1df37a99986eaebcbc875d4",
    "0005_good_grants.py": ("ffe6fe2f1c947c2b81cdd78af7d61a49536988a153420b0ea1a2d9290f6e72a2"),
    "0006_tasks.py": ("6fffb437538c64c84548a197815f78fbbd9160167ece612d426d63ca8a595b76"),
    "0007_memory_and_discovery.py": (
        "6f1102b7714ebdb60cdecd430d6f6bee6d11148d03aa7c3a12ce2cfec42d4fd6"
    ),
    "0008_jobs.py": ("e7d60bc02cc1e5da538ea8428da19b33c8884430d000b974685a3694784f360d"),
    "0009_clients.py": ("2503607fc47ac82053af6a76e3d109f3782dbec60a3ff7bd76071b9e067a62b0"),
}


@pytest.mark.parametrize("name", FROZEN)
def test_a_released_revision_is_as_it_was(name: str) -> None:
    assert hashlib.sha256((VERSIONS / name).read_bytes()).hexdigest() == FROZEN[name]


def test_whatever_is_not_released_comes_after_all_that_is() -> None:
    names = sorted(path.name for path in VERSIONS.glob("0*.py"))
    assert names[: len(FROZEN)] == sorted(FROZEN)
