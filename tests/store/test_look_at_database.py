"""A look at a database: what state it is in, without changing anything."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.doubles.clock import SetClock

from backburner.core.errors import StoreFailed
from backburner.store.lifecycle.opening import DatabaseState, look_at_database, open_database
from backburner.store.lifecycle.schema import OUR_VERSIONS, known_revisions

NEWEST = known_revisions(OUR_VERSIONS)[-1]


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Make a folder with a revision that is still to come."""
    folder = tmp_path / "later"
    folder.mkdir()
    (folder / "9999_later.py").write_text("")
    return folder


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return found


def test_tables_that_are_up_to_date(url: str) -> None:
    assert look_at_database(url) == DatabaseState(NEWEST, NEWEST)


def test_tables_that_are_older_stay_so(url: str, later: Path) -> None:
    versions = (*OUR_VERSIONS, later)

    for _ in range(2):
        assert look_at_database(url, versions=versions) == DatabaseState(NEWEST, "9999")


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert look_at_database(f"sqlite:///{tmp_path}/absent.sqlite3") == DatabaseState(None, NEWEST)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_server_stays_empty(empty_postgres_url: str) -> None:
    for _ in range(2):
        assert look_at_database(empty_postgres_url) == DatabaseState(None, NEWEST)


def test_a_file_that_a_process_has_is_left_to_it(migrated_sqlite_url: str) -> None:
    with closing(open_database(migrated_sqlite_url, SetClock())):
        assert look_at_database(migrated_sqlite_url) == DatabaseState(None, NEWEST, in_use=True)

    assert look_at_database(migrated_sqlite_url) == DatabaseState(NEWEST, NEWEST)


def bad_urls(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "text").write_text("This is no database.")
    yield f"sqlite:///{tmp_path}/text"
    yield "postgresql://me:sesame@127.0.0.1:9/b"


def test_what_could_not_be_opened_is_refused_in_words(tmp_path: Path) -> None:
    for url in bad_urls(tmp_path):
        with pytest.raises(StoreFailed) as refused:
            look_at_database(url)
        assert "sesame" not in str(refused.value)
