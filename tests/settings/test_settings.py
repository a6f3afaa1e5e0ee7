"""The sources of settings, their precedence, and their validation."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError
from sqlalchemy import make_url
from support.requirements import requirement

from backburner.core.errors import BadSetting
from backburner.data_folder import variable
from backburner.settings import Settings, load, takes
from backburner.store.dialect import make_engine

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _empty_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@requirement("B-config")
def test_the_defaults_are_as_required() -> None:
    settings = load()

    assert settings.enabled is True
    assert settings.poll_interval == timedelta(seconds=5)
    assert (settings.batch, settings.concurrency) == (5, 5)
    assert settings.per_user_concurrency is None
    assert settings.run_timeout == timedelta(minutes=5)
    assert settings.job_timeout == timedelta(hours=1)
    assert (settings.lease, settings.heartbeat) == (timedelta(seconds=30), timedelta(seconds=10))
    assert settings.discovery_enabled is True
    assert settings.discovery_interval == timedelta(minutes=30)
    assert settings.idle_threshold == timedelta(minutes=10)
    assert (settings.max_active_tasks, settings.keep_runs_days) == (20, 30)
    assert (settings.context, settings.context_chat) == (16000, 100_000)
    assert (settings.host, settings.port) == ("127.0.0.1", 8484)


@requirement("B-config")
def test_a_variable_overrides_the_file_and_an_option_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "x.toml", "port = 1\nbatch = 1\nconcurrency = 1\n")
    monkeypatch.setenv("BACKBURNER_CONFIG", str(file))
    monkeypatch.setenv("BACKBURNER_BATCH", "2")
    monkeypatch.setenv("BACKBURNER_CONCURRENCY", "2")
    settings = load(concurrency=3, lease=None)

    assert (settings.port, settings.batch, settings.concurrency) == (1, 2, 3)
    assert settings.lease == timedelta(seconds=30)


@requirement("B-config")
def test_the_file_in_the_data_folder_is_found(tmp_path: Path) -> None:
    write(tmp_path / "data" / "backburner.toml", 'poll_interval = "2m"\nenabled = false\n')
    settings = load()

    assert settings.poll_interval == timedelta(minutes=2)
    assert settings.enabled is False


@requirement("B-config")
def test_a_chosen_file_is_read_instead_of_the_one_in_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path / "data" / "backburner.toml", "port = 1\n")
    chosen = write(tmp_path / "other.toml", "batch = 2\n")

    assert (load(config=chosen).port, load(config=chosen).batch) == (8484, 2)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("5", timedelta(seconds=5)),
        ("0.5", timedelta(milliseconds=500)),
        ("250ms", timedelta(milliseconds=250)),
        ("90s", timedelta(seconds=90)),
        (" 10 m ", timedelta(minutes=10)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        (7, timedelta(seconds=7)),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str | int, duration: timedelta) -> None:
    assert load(run_timeout=text).run_timeout == duration


def test_other_machines_need_tls_or_a_public_url(tmp_path: Path) -> None:
    everywhere = "0.0.0.0"  # noqa: S104 (to be refused, or encrypted)
    with pytest.raises(BadSetting):
        load(host=everywhere)
    with pytest.raises(BadSetting):
        load(tls_key=tmp_path / "key")
    proxied = load(host=everywhere, public_url="https://B.example:443/")
    own = load(host=everywhere, tls_certificate=tmp_path / "pem", tls_key=tmp_path / "key")

    assert proxied.is_open
    assert (proxied.public_url, proxied.proxies) == ("https://b.example", ())
    assert (own.is_open, own.proxies) == (True, ())
    assert not load(host="::1").is_open
    several = load(public_url="https://b.example:8443", trusted_proxies=["10.0.0.0/8"])
    assert (several.public_url, several.proxies) == ("https://b.example:8443", ("10.0.0.0/8",))


def test_push_services_are_given_a_contact_that_all_of_them_take() -> None:
    for contact in ("", "mailto:ada@example.com", "https://example.com/backburner"):
        assert load(push_contact=contact).push_contact == contact
    for refused in (
        "ada@example.com",
        "mailto:ada@localhost",
        "mailto: <ada@example.com>",
        "mailto:ada@example.com,bob@example.com",
        "https://localhost",
        "http://example.com",
        "https://user@example.com",
        "https://example.com/a b",
    ):
        with pytest.raises(BadSetting, match="push-contact cannot be"):
            load(push_contact=refused)


@requirement("B-config")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "many"),
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("BATCH", "0"),
        ("BATCH", "1.5"),
        ("ENABLED", "perhaps"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("POLL_INTERVAL", "0"),
        ("POLL_INTERVAL", "-5s"),
        ("POLL_INTERVAL", "367d"),
        ("POLL_INTERVAL", "nan"),
        ("POLL_INTERVAL", "soon"),
        ("HOST", "example.org"),
    ],
)
def test_an_invalid_value_names_the_variable_the_value_and_what_is_valid(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"BACKBURNER_{name}", value)
    with pytest.raises(BadSetting) as caught:
        load()

    assert re.match(rf"BACKBURNER_{name} cannot be {value!r}: .{{10,}}\.$", str(caught.value))


def test_an_invalid_value_names_the_option_or_file_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"^--log-level cannot be 'loud'"):
        load(log_level="loud")
    file = write(tmp_path / "x.toml", "port = true\n")
    with pytest.raises(BadSetting, match=rf"^`port` in {file} cannot be 'True'"):
        load(config=file)


def test_an_unknown_variable_is_refused_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_PROT", "1")
    with pytest.raises(BadSetting) as caught:
        load()

    assert str(caught.value) == "BACKBURNER_PROT is not a setting. Did you mean BACKBURNER_PORT?"


def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    file = write(tmp_path / "x.toml", "concurency = 2\n")
    with pytest.raises(BadSetting) as caught:
        load(config=file)

    assert f"`concurency` in {file}" in str(caught.value)
    assert "Did you mean concurrency?" in str(caught.value)


def test_without_a_close_match_the_reference_page_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_XYZZY", "1")
    with pytest.raises(BadSetting, match=r"settings\.md"):
        load()


def test_empty_variables_and_those_of_tests_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_TEST_ANYTHING", "1")
    monkeypatch.setenv("BACKBURNER_PORT", "")

    assert load().port == 8484


@pytest.mark.parametrize("text", [b"port = ", b"\xff"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(text)
    with pytest.raises(BadSetting, match=r"x\.toml is not"):
        load(config=tmp_path / "x.toml")


def test_a_chosen_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"absent\.toml"):
        load(config=tmp_path / "absent.toml")


def test_the_file_in_the_data_folder_cannot_move_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path / "data" / "backburner.toml", 'data = "/elsewhere"\n')
    with pytest.raises(BadSetting, match="BACKBURNER_DATA"):
        load()


@pytest.mark.parametrize("folder", ["", "~nobody-of-that-name/x"])
def test_an_invalid_data_folder_is_refused(folder: str) -> None:
    with pytest.raises(BadSetting, match=r"^--data"):
        load(data=folder)


def test_a_data_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert load(data="here").data == tmp_path / "here"


@pytest.mark.parametrize(
    "template",
    ["/srv/shared", "srv/{login}", "/srv/{login}/..", "/srv//{login}", "/srv/{user}/{login}"],
)
def test_a_folder_for_each_account_is_an_absolute_path_with_the_login(template: str) -> None:
    with pytest.raises(BadSetting, match=r"with \{login\} for the login"):
        load(folders=[template])


def test_the_heartbeat_must_be_shorter_than_the_lease() -> None:
    with pytest.raises(BadSetting, match="shorter than lease"):
        load(lease="5s", heartbeat="5s")


def test_the_timeout_of_jobs_is_a_day_at_most() -> None:
    with pytest.raises(BadSetting, match="job_timeout is not valid: The timeout cannot be 25"):
        load(job_timeout="25h")


def test_the_default_database_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    url = load().database.get_secret_value()

    assert url == f"sqlite:///{tmp_path}/data/backburner.sqlite3"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_both_schemes_of_postgresql_are_accepted(scheme: str) -> None:
    url = load(database_url=f"{scheme}://me:pw@db/b").database.get_secret_value()

    assert url == "postgresql://me:pw@db/b"


@pytest.mark.parametrize(
    "url",
    [
        *("mysql://me:sesame@db/b", "sesame"),
        *(f"postgresql://me:1{sign}sesame@db/b" for sign in "/?#@"),
        *(f"postgresql://me:ses{sign}ame@db/b" for sign in "/?#@"),
    ],
)
def test_an_invalid_database_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(BadSetting) as caught:
        load(database_url=url)

    assert "--database-url is invalid" in str(caught.value)
    assert "ses" not in str(caught.value)


@pytest.mark.parametrize(
    "rest", ["me:p%23%3F@db:5432/b?options=a@b", "db/b?user=a@b", "/b?host=/tmp", "[::1]:5432/b"]
)
def test_valid_urls_of_servers_are_accepted(rest: str) -> None:
    assert load(database_url=f"postgresql://{rest}").database_url


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("me:pw@a:1,b:2/b", "me:pw@/b?host=a,b&port=1,2&target_session_attrs=read-write"),
        ("a,[::1]:2", "/?host=a,::1&port=5432,2&target_session_attrs=read-write"),
        (
            "me@a,b/b?target_session_attrs=any&sslmode=require",
            "me@/b?host=a,b&port=5432,5432&target_session_attrs=any&sslmode=require",
        ),
        ("me@/b?host=a,b&port=1,2", "me@/b?host=a,b&port=1,2"),
    ],
)
def test_several_hosts_may_be_named_as_libpq_takes_them(given: str, read: str) -> None:
    url = load(database_url=f"postgresql://{given}").database.get_secret_value()

    assert url == f"postgresql://{read}"
    # The driver gets all of them, with the libraries between.
    parameters = conninfo_to_dict(make_url(url).render_as_string(hide_password=False))
    arguments = make_engine(url).dialect.create_connect_args(make_url(url))[1]
    for found in (parameters, arguments):
        assert str(found["host"]).count(",") == str(found["port"]).count(",") == 1
        assert "target_session_attrs" in found or "any" in given or given == read


def test_the_direct_url_is_as_secret_as_the_other() -> None:
    settings = load(database_direct_url="postgresql://me:open%20sesame@db/b")

    assert "sesame" not in repr(settings)
    assert {"open%20sesame", "open sesame"} <= set(settings.secrets())


def test_a_secret_can_be_read_from_a_file_without_its_last_newline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "url", "postgresql://me:sesame@db/b\n")
    monkeypatch.setenv("BACKBURNER_DATABASE_URL_FILE", str(file))

    assert load().database.get_secret_value() == "postgresql://me:sesame@db/b"


def test_a_secret_in_a_file_and_in_a_variable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", "postgresql://db/a")
    monkeypatch.setenv("BACKBURNER_DATABASE_URL_FILE", str(write(tmp_path / "url", "x")))
    with pytest.raises(BadSetting, match="both"):
        load()


def test_a_secrets_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL_FILE", str(tmp_path / "absent"))
    with pytest.raises(BadSetting, match=r"BACKBURNER_DATABASE_URL_FILE .*absent"):
        load()


def test_only_secrets_can_be_read_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_PORT_FILE", "x")
    with pytest.raises(BadSetting, match="Did you mean BACKBURNER_PORT"):
        load()


def test_secrets_are_listed_for_redaction_and_not_shown() -> None:
    settings = load(database_url="postgresql://me:open%20sesame@db/b")

    assert "sesame" not in repr(settings) + str(settings.database)
    assert {"open%20sesame", "open sesame"} <= set(settings.secrets())


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError):
        load().port = 1


def test_every_setting_has_a_description_and_a_type() -> None:
    for name, field in Settings.model_fields.items():
        assert (field.description or "").endswith("."), name
        assert takes(name).text


def test_the_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    check = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]

    assert subprocess.run(check, check=False).returncode == 0
    assert all(variable(name) in page for name in Settings.model_fields)
