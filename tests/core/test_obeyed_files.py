"""Which files other programs obey, and which settings of a repository make git run nothing."""

import pytest
from support.cases.policy_cases import judge

from backburner.core.obeyed_files import (
    adds_plain_settings,
    is_obeyed,
    plain_settings,
    repository_of,
)
from backburner.core.question import NO, YES
from backburner.core.tool_policy import (
    Allow,
    Ask,
    GrantMatch,
    Tool,
    ToolCall,
    approval_options,
    call_digest,
)

WRITE = Tool(
    server="backburner",
    name="write_file",
    definition="d",
    free=True,
    grant_match=GrantMatch.NOTHING,
    guards_files=True,
)
PLAIN = """\
[core]
	repositoryformatversion = 0
	bare = false
[remote "origin"]
	url = https://example.org/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = Ann Example
	email = ann+git@example.org
"""


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".git/hooks/pre-commit", "a/b/.git/hooks/post-checkout", ".git"),
        *(".git/info/attributes", ".git/modules/x/config", ".git/modules/x/hooks/pre-push"),
        *("bare.git/config", "bare.git/hooks/update", ".git/config.worktree", ".git/hooks"),
        *(".envrc", "a/.envrc", "./.envrc", "a/../.envrc", ".ENVRC", "//a//.envrc", ".npmrc"),
        *(".vscode/tasks.json", ".config/x/y", ".vscode", "CLAUDE.md", "docs/claude.md"),
        *("AGENTS.md", ".claude/settings.json", ".ssh/config", ".husky/pre-commit", ".bashrc"),
    ],
)
def test_files_that_other_programs_obey_are_known(path: str) -> None:
    call = ToolCall(WRITE, {"path": path, "content": "x"})

    assert is_obeyed(path)
    assert judge(call) == Ask(call_digest(call))
    assert approval_options([call]) == (YES, NO)


@pytest.mark.parametrize(
    "path",
    [
        *("a.txt", "src/hooks/use-state.ts", "config", "hooks/pre-commit", ".git/index", "x.envrc"),
        *(".git/hooks/pre-commit.sample", ".github/workflows/ci.yml", ".gitignore", "vscode/x"),
        *(".git/HEAD", ".git/COMMIT_EDITMSG", ".gitattributes", "claude.txt", "config/config"),
    ],
)
def test_other_files_are_written_freely(path: str) -> None:
    assert judge(ToolCall(WRITE, {"path": path, "content": "x"})) == Allow()


def test_a_path_that_is_none_needs_no_approval_to_be_refused() -> None:
    assert judge(ToolCall(WRITE, {"content": "x"})) == Allow()


@pytest.mark.parametrize(
    ("path", "repository"),
    [
        (".git/config", ".git"),
        ("a/.git/hooks/x", "a/.git"),
        ("x.git/modules/y.git/config", "x.git"),
        (".git", None),
        ("a/config", None),
    ],
)
def test_a_file_belongs_to_the_outermost_repository(path: str, repository: str | None) -> None:
    assert repository_of(path) == repository


@pytest.mark.parametrize(
    "setting",
    [
        *("[alias]\n x = !ls", "[core]\n fsmonitor = ./x", "[core]\n hooksPath = x"),
        *("[core]\n sshCommand = x", '[remote "o"]\n url = ext::sh -c x', "[include]\n path = x"),
        *('[filter "x"]\n clean = x', '[remote "o"]\n uploadpack = x', "[core]\n worktree = /home"),
        *('[branch "m"]\n remote = ../x', "[core]\n bare = true ; x", "[core]\\\n", "# comment"),
        *("[user]\n name = a\\", '[remote "o"]\n url = /tmp/x', "[core] editor = x"),
    ],
)
def test_settings_that_make_git_run_something_are_not_plain(setting: str) -> None:
    assert not adds_plain_settings(PLAIN, f"{PLAIN}{setting}\n")
    assert not adds_plain_settings("", setting)
    assert plain_settings(f"{setting}\n{PLAIN}").split() == PLAIN.split()


def test_what_git_itself_writes_is_plain() -> None:
    assert adds_plain_settings("", PLAIN)
    assert plain_settings(PLAIN).split() == PLAIN.split()
    own = "[alias]\n\tlast = log -1\n"
    assert adds_plain_settings(own, own + PLAIN)
    assert adds_plain_settings(own + PLAIN, PLAIN)
