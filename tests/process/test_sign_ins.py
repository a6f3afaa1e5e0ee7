"""Sign-ins as their programs store them: read, rebuilt without anything that runs, or refused."""

import configparser
import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.signed_in import KUBECONFIG, SignedInOwner
from support.requirements import requirement

from backburner.core.errors import ProcessFailed
from backburner.process.sign_ins.plain_yaml import read_yaml
from backburner.process.sign_ins.sign_in import Owner, SignIn, read_sign_in


@pytest.fixture
def owner(tmp_path: Path) -> SignedInOwner:
    return SignedInOwner(tmp_path)


def read(owner: SignedInOwner, program: str, **variables: str) -> SignIn:
    return read_sign_in(program, Owner(owner.home, variables))


def refusal(owner: SignedInOwner, program: str, **variables: str) -> str:
    with pytest.raises(ProcessFailed) as raised:
        read(owner, program, **variables)
    return str(raised.value)


def test_gh_signs_in_with_the_account_of_each_host(owner: SignedInOwner) -> None:
    found = read(owner, "gh")

    hosts = json.loads(found.files[".config/gh/hosts.yml"])
    assert hosts["github.com"]["oauth_token"] == owner.token
    assert (found.account, found.secrets) == ("octocat at github.com", frozenset({owner.token}))
    assert owner.token not in repr(found)


def test_gh_takes_over_no_alias_pager_or_editor(owner: SignedInOwner) -> None:
    owner.write(".config/gh/config.yml", "aliases:\n  x: '!touch started'\npager: ./x\n")

    files = read(owner, "gh").files
    assert set(files) == {".config/gh/hosts.yml", ".config/gh/config.yml"}
    assert "started" not in str(files)


def test_gh_signs_in_with_a_token_of_the_environment(owner: SignedInOwner) -> None:
    variables = {"GITHUB_TOKEN": "a-token"}
    found = read(owner, "gh", **variables)

    assert (found.account, found.files) == ("the token in GITHUB_TOKEN", {})
    assert found.variables == {"GH_TOKEN": "a-token"}


def test_gh_is_found_in_another_folder(owner: SignedInOwner, tmp_path: Path) -> None:
    (tmp_path / "gh").mkdir()
    (tmp_path / "gh/hosts.yml").write_text("ghe.example:\n  user: me\n  oauth_token: other\n")

    for variable, path in (("GH_CONFIG_DIR", tmp_path / "gh"), ("XDG_CONFIG_HOME", tmp_path)):
        assert read(owner, "gh", **{variable: str(path)}).account == "me at ghe.example"


@requirement("B-signed-in")
def test_a_token_in_the_keyring_is_named_as_the_reason(owner: SignedInOwner) -> None:
    owner.write(
        ".config/gh/hosts.yml", "github.com:\n    user: octocat\n    users:\n        octocat:\n"
    )

    assert "in the keyring of the desktop" in refusal(owner, "gh")


@pytest.mark.parametrize(
    ("program", "file", "content"),
    [
        ("gh", ".config/gh/hosts.yml", None),
        ("gh", ".config/gh/hosts.yml", ""),
        ("kubectl", ".kube/config", None),
        ("npm", ".npmrc", None),
        ("npm", ".npmrc", "registry=https://example.org/\n"),
        ("aws", ".aws/credentials", None),
    ],
)
def test_no_sign_in_is_named_as_the_reason(
    owner: SignedInOwner, program: str, file: str, content: str | None
) -> None:
    path = owner.write(file, content or "")
    if content is None:
        path.unlink()

    assert f"{program} is not signed in" in refusal(owner, program)


def test_settings_that_cannot_be_read_are_named(owner: SignedInOwner) -> None:
    path = owner.write(".config/gh/hosts.yml", "github.com: &anchor\n  user: x\n")
    assert f"{path} cannot be read" in refusal(owner, "gh")

    owner.write(".config/gh/hosts.yml", "x" * (2**20 + 1))
    assert "too large" in refusal(owner, "gh")

    path.unlink()
    path.mkdir()
    assert "cannot be read: Is a directory" in refusal(owner, "gh")

    owner.write(".aws/credentials", "no section\n")
    assert "cannot be read: not readable" in refusal(owner, "aws")


def kubeconfig(owner: SignedInOwner) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(read(owner, "kubectl").files[".kube/config"])
    return copy


def test_kubectl_signs_in_with_the_user_of_the_current_context(owner: SignedInOwner) -> None:
    found = read(owner, "kubectl")

    assert found.account == "developer, context kind-one"
    assert found.secrets == {"kubectl-token"}
    assert kubeconfig(owner)["users"] == [{"name": "developer", "user": {"token": "kubectl-token"}}]


def test_kubectl_gets_certificates_and_tokens_by_their_content(owner: SignedInOwner) -> None:
    owner.write(".kube/ca.pem", "CA")
    owner.write(".kube/key.pem", "KEY")
    owner.write(".kube/token", "by-file\n")
    text = KUBECONFIG.replace(
        "    token: kubectl-token", "    tokenFile: token\n    client-key: key.pem"
    )
    text = text.replace(
        "    server:",
        "    certificate-authority: ca.pem\n    disable-compression: true\n    server:",
    )
    owner.write(".kube/config", text)

    copy = kubeconfig(owner)
    assert copy["users"][0]["user"] == {"token": "by-file", "client-key-data": "S0VZ"}
    assert copy["clusters"][0]["cluster"] == {
        "certificate-authority-data": "Q0E=",
        "disable-compression": True,
        "server": "https://127.0.0.1:6443",
    }


@requirement("B-signed-in")
@pytest.mark.parametrize(
    "user",
    [
        "    exec:\n      command: ./x\n      apiVersion: v1\n",
        "    auth-provider:\n      name: oidc\n      config:\n        id-token: x\n",
    ],
)
def test_kubectl_starts_no_program_for_its_token(owner: SignedInOwner, user: str) -> None:
    owner.write(".kube/config", KUBECONFIG.replace("    token: kubectl-token\n", user))
    assert "comes from another program" in refusal(owner, "kubectl")

    # Another context may need one; it is left out.
    more = "\n- name: other\n  user:\n" + user
    owner.write(".kube/config", KUBECONFIG.rstrip("\n") + more)
    assert [one["name"] for one in kubeconfig(owner)["users"]] == ["developer"]


def test_kubectl_with_several_files_is_refused(owner: SignedInOwner) -> None:
    assert "several files" in refusal(owner, "kubectl", KUBECONFIG="/a:/b")


def test_npm_signs_in_with_tokens_and_registries_only(owner: SignedInOwner) -> None:
    owner.write(
        ".npmrc",
        "; mine\n//registry.example/:_authToken=${NPM_TOKEN}\n@me:registry=https://registry.example/\n"
        "script-shell=./x\nnode-options=--require=./x\nhttps-proxy=http://evil.example\nca=x\n",
    )

    variables = {"NPM_TOKEN": "npm-token"}
    found = read(owner, "npm", **variables)

    assert found.files == {
        ".npmrc": "//registry.example/:_authToken=npm-token\n@me:registry=https://registry.example/\n"
    }
    assert (found.account, found.secrets) == ("registry.example", frozenset({"npm-token"}))


def test_aws_signs_in_with_keys_of_profiles_only(owner: SignedInOwner) -> None:
    owner.write(
        ".aws/credentials",
        "[default]\naws_access_key_id = AKIA\naws_secret_access_key = secret-key\n"
        "[other]\ncredential_process = ./x\n",
    )
    owner.write(
        ".aws/config",
        "[default]\nregion = eu-west-1\ncli_pager = ./x\ncredential_process = ./x\n"
        "[profile role]\nrole_arn = arn\nsource_profile = default\n[plugins]\nx = y\n",
    )

    found = read(owner, "aws")

    parsed = configparser.RawConfigParser(default_section="")
    parsed.read_string(found.files[".aws/credentials"])
    assert parsed.sections() == ["default"]
    parsed.read_string(found.files[".aws/config"])
    assert dict(parsed["default"])["region"] == "eu-west-1"
    assert "./x" not in str(found.files)
    assert "plugins" not in str(found.files)
    assert (found.account, found.secrets) == ("profile default", frozenset({"secret-key"}))
    assert read(owner, "aws", AWS_PROFILE="role").account == "profile role"
    assert "has no access key" in refusal(owner, "aws", AWS_PROFILE="other")


def test_aws_signs_in_with_a_key_of_the_environment(owner: SignedInOwner) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "k", "AWS_REGION": "x"}

    found = read(owner, "aws", **variables)

    assert (found.variables, found.secrets) == (variables, frozenset({"k"}))


def test_git_without_a_stored_password_is_refused(owner: SignedInOwner) -> None:
    assert "git has no sign-in" in refusal(owner, "git")

    owner.write(".git-credentials", "ssh://me:x@example.org\nhttps://example.org\n")
    assert "git has no sign-in" in refusal(owner, "git")


@requirement("B-signed-in")
def test_the_state_of_each_sign_in_is_described(owner: SignedInOwner) -> None:
    states = {state.program: state for state in owner.sign_ins(PATH=str(owner.programs)).states()}

    assert list(states) == ["aws", "gh", "git", "kubectl", "npm"]
    assert states["gh"].account == "octocat at github.com"
    assert states["aws"].missing == "aws is not installed."
    (owner.home / ".kube/config").unlink()
    later = {state.program: state for state in owner.sign_ins().states()}
    assert later["kubectl"].missing == "kubectl is not signed in."


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1\nb:\n", {"a": "1", "b": None}),
        ("---\na: {}\nb: []\nc: ~ # x\n", {"a": {}, "b": [], "c": None}),
        ("a:\n- b: 1\n  c: 2\n- d\n-\n  e: 3\n", {"a": [{"b": "1", "c": "2"}, "d", {"e": "3"}]}),
        ("a:\n  - - x\n    - y\n", {"a": [["x", "y"]]}),
        ("\"a b\": 'it''s'\nc: \"x\\ty\" # z\n", {"a b": "it's", "c": "x\ty"}),
        ("a: https://x:1/y\n# c\nd: x#y\n", {"a": "https://x:1/y", "d": "x#y"}),
        ('{"a": ["b"]}', {"a": ["b"]}),
    ],
)
def test_plain_yaml_is_read(text: str, value: object) -> None:
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("a: |\n  x\n", "a: >\n  x\n", "a: &x y\n", "a: *x\n", "a: !!str x\n", "a: {b: c}\n"),
        *(
            "a: [b]\n",
            "a\n",
            "a: b\n  c: d\n",
            "a: 1\na: 2\n",
            "\ta: b\n",
            'a: "b" c\n',
            "a: b: c\n",
        ),
        *("a: 'b\n", "{", "- a\nb: c\n", "a:\n" + "".join(" " * n + "- \n" for n in range(1, 40))),
        *("<<: x: y\n", "? a\n", "a: b\n- c\n"),
    ],
)
def test_other_yaml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_yaml(text)
