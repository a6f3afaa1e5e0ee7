"""Folders that the settings give: none is a forbidden place, and no two accounts meet in one."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backburner.core.errors import BadRequest, BadSetting
from backburner.core.passwords import LOGIN_PATTERN
from backburner.core.work.folder_templates import check_templates, fill_template
from backburner.core.work.folders import ForbiddenPlaces, lies_in

FORBIDDEN = ForbiddenPlaces(
    homes=["/people/ada", "/superuser"],
    private={
        "/var/lib/backburner": "Backburner's data folder",
        "/opt/keys/tls.pem": "a key of the server",
        "/people/bob/sign-ins/kube": "a place of sign-ins",
    },
)
#: Logins are strings over these, so that many of them contain a part of a template.
LOGINS = st.text("abx-", min_size=2, max_size=5).filter(LOGIN_PATTERN.fullmatch)
PARTS = st.sampled_from(
    ["a", "ab", "x", "{login}", "{login}-x", "x-{login}", "{login}{login}", "a-{login}-x"]
)
TEMPLATES = (
    st.lists(PARTS, min_size=1, max_size=3)
    .map(lambda parts: "/srv/" + "/".join(parts))
    .filter(lambda template: "{login}" in template)
)


@pytest.mark.parametrize(
    "templates",
    [
        ["/srv/{login}"],
        ["/people/{login}/code"],
        ["/srv/work/{login}", "/srv/notes/{login}"],
        ["/srv/{login}/work", "/srv/{login}/notes"],
        ["/srv/{login}", "/srv/.shared/{login}"],
        ["/srv/a-{login}", "/srv/b-{login}"],
    ],
)
def test_templates_that_give_every_account_folders_of_its_own_are_good(
    templates: list[str],
) -> None:
    check_templates(templates, FORBIDDEN)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("/people/{login}", "/people/ada is or contains a home folder"),
        ("/{login}", "is or contains a home folder"),
        ("/etc/{login}", "a folder of the system"),
        ("/people/ada/.{login}", "settings and sign-ins"),
        ("/people/{login}/.config", "settings and sign-ins"),
        ("/var/lib/backburner/{login}", "lies in Backburner's data folder"),
        ("/var/lib/{login}", "/var/lib/backburner lies in Backburner's data folder"),
        ("/var/{login}", "/var/lib contains Backburner's data folder"),
        ("/opt/k{login}", "/opt/keys contains a key of the server"),
        ("/people/{login}/sign-ins", "/people/bob/sign-ins contains a place of sign-ins"),
    ],
)
def test_a_template_that_can_be_a_forbidden_place_is_refused_in_words(
    template: str, reason: str
) -> None:
    with pytest.raises(BadSetting, match=reason) as refused:
        check_templates(["/srv/{login}", template], FORBIDDEN)
    assert template in refused.value.message
    assert "/srv/{login}" in refused.value.hint


@pytest.mark.parametrize(
    "other",
    [
        "/srv/{login}",
        "/srv/{login}-x",
        "/srv/x{login}",
        "/srv/{login}/app",
        "/srv/shared/{login}",
        "/SRV/{login}",
    ],
)
def test_templates_in_which_two_accounts_could_meet_are_refused_in_words(other: str) -> None:
    for templates in (["/srv/{login}", other], [other, "/srv/{login}"]):
        with pytest.raises(BadSetting, match="can meet") as refused:
            check_templates(templates, ForbiddenPlaces())
        assert other in refused.value.message
        assert "below different folders" in refused.value.hint


@given(st.lists(TEMPLATES, min_size=1, max_size=3), LOGINS, LOGINS)
def test_no_two_accounts_meet_in_folders_of_templates_that_are_good(
    templates: list[str], one: str, other: str
) -> None:
    try:
        check_templates(templates, ForbiddenPlaces())
    except BadSetting:
        assume(False)  # noqa: FBT003
    made = [(login, number) for login in {one, other} for number in range(len(templates))]
    paths = {key: fill_template(templates[key[1]], key[0]) for key in made}

    for key, path in paths.items():
        for other_key, other_path in paths.items():
            assert key == other_key or not lies_in(path, other_path)


def test_a_login_fills_a_template() -> None:
    assert fill_template("/srv/{login}/of-{login}", "a.b@c") == "/srv/a.b@c/of-a.b@c"


@pytest.mark.parametrize(
    "login", ["", "..", ".", "../ada", "a/b", "ADA", "\uff41da", "ada\u0301", "ada\n", "-a", "a\0b"]
)
def test_a_login_that_is_none_is_no_part_of_a_path(login: str) -> None:
    with pytest.raises(BadRequest, match="login"):
        fill_template("/srv/{login}", login)
