"""Which files other programs obey, and which settings of a repository make git run nothing."""

import time

import pytest
from support.cases.policy_cases import judge
from support.requirements import requirement

from backburner.core.obeyed_files import (
    MAX_POINTERS,
    Place,
    adds_plain_settings,
    find_pointers,
    is_obeyed,
    is_plain_change,
    is_repository,
    plain_settings,
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
        *(".git/commondir", ".git/rebase-merge/git-rebase-todo", ".hg/hgrc", ".Rprofile", ".irbrc"),
        *(".git/rebase-merge/strategy", ".git/rebase-merge/strategy_opts", ".git/sequencer/opts"),
        *(".git/remotes/x", ".git/branches/x", ".git/modules/x/remotes/y/z"),
        *(".pdbrc", ".ghci", ".cargo/config.toml", ".mise.toml", ".aider.conf.yml"),
        *("opencode.json", ".github/copilot-instructions.md", "x.code-workspace", ".clinerules/x"),
        *(".helix/languages.toml", ".nvim.lua", ".dir-locals-2.el", ".jj/repo/config.toml"),
        *(".jj/repo", ".sl/config", ".RData", ".Renviron", ".ocamlinit", ".iex.exs", ".octaverc"),
        *(".bundle/config", ".autoenv.zsh", ".mvn/maven.config", ".mvn/wrapper/x", ".pylintrc"),
        *(".yarn/releases/yarn-4.cjs", "mise.local.toml", "mise/config.toml", ".mise.dev.toml"),
        *("mise.dev.toml", ".mise/config.local.toml", ".mise.dev.local.toml", "crush.json"),
        *(".github/instructions/x/y.md", ".rules", "AGENT.md", "QWEN.md", ".roo/rules/x.md"),
        *(".roorules", ".kiro/x", ".junie/x", ".kilocode/x", ".amazonq/x", ".goosehints"),
        *(".agents/x", ".crush.json"),
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
        *(".git/refs/heads/opts", ".git/refs/heads/strategy", "rebase-merge/strategy"),
        *(".git/refs/remotes/x/y", ".git/logs/refs/remotes/x", ".git/refs/heads/branches/x"),
        *("remotes/x", "src/branches/x", ".yarn/cache/x.zip", ".jj/repo/store/x", "releases/x"),
        *("instructions/x", "src/mise", "repo/config.toml", ".bundle/x", ".mise/tasks.md"),
        *(".git/HEAD", ".git/COMMIT_EDITMSG", ".gitattributes", "claude.txt", "config/config"),
    ],
)
def test_other_files_are_written_freely(path: str) -> None:
    assert judge(ToolCall(WRITE, {"path": path, "content": "x"})) == Allow()


def test_a_path_that_is_none_needs_no_approval_to_be_refused() -> None:
    assert judge(ToolCall(WRITE, {"content": "x"})) == Allow()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"head", "objects", "refs"}, True),
        ({"head", "commondir"}, True),
        ({"head", "objects"}, False),
        ({"objects", "refs", "config"}, False),
    ],
)
def test_git_knows_a_repository_by_its_shape(names: set[str], *, expected: bool) -> None:
    assert is_repository(names) == expected


def test_in_a_folder_of_that_shape_only_files_of_git_are_obeyed() -> None:
    place = Place(is_repository=True)

    assert place.obeys("config")
    assert place.enter("hooks").obeys("update")
    assert place.enter("info").obeys("attributes")
    assert place.enter("rebase-merge").obeys("git-rebase-todo")
    assert place.enter("sequencer").obeys("opts")
    assert not place.enter("src").obeys("config")
    assert not place.enter("src").enter("hooks").obeys("x.ts")


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [
        *((".", ".cargo", True), ("a", ".HG", True), (".git", "rebase-merge", True)),
        *((".yarn", "releases", True), (".", ".yarn", True), (".", ".jj", True)),
        *((".git/refs", "x", True), (".", "lib", False), ("src", "hooks", False)),
    ],
)
def test_a_link_is_obeyed_where_a_folder_of_its_name_would_be(
    folder: str, name: str, *, expected: bool
) -> None:
    place = Place.at(folder)

    assert place.obeys(name, is_link=True) == expected
    assert not place.obeys(name)
    assert place.enter(name).may_hold_obeyed == expected


def test_objects_of_a_repository_are_not_obeyed() -> None:
    assert not Place.at(".git/objects").may_hold_obeyed


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        (".git/worktrees/x/commondir", "", "../..\n", True),
        (".git/worktrees/x/commondir", "", "../../lib\n", False),
        (".git/commondir", "", "../..\n", False),
        ("worktrees/x/commondir", "", "../..\n", False),
        ("a/worktrees/x/commondir", "", "../..\n", False),
        ("a/bare.git/worktrees/x/commondir", "", "../..\n", True),
        (".git/rebase-merge/git-rebase-todo", "", "pick 1 x\nf 2\n# exec\n", True),
        (".git/rebase-merge/git-rebase-todo", "", "pick 1 x\nexec ls\n", False),
        (".git/rebase-merge/git-rebase-todo", "x ls\n", "x ls\n", True),
        (".git/rebase-merge/strategy", "", "ort\n", True),
        (".git/rebase-merge/strategy", "", "e/x\n", False),
        (".git/rebase-merge/strategy_opts", "", " '--ours'\n", True),
        (".git/worktrees/x/rebase-merge/strategy_opts", "", "--subtree=a/b\n", False),
        (".git/sequencer/opts", "", "[options]\n\tsignoff = true\n", True),
        (".git/sequencer/opts", "", "[options]\n\tstrategy = ../x\n", False),
        (".git/hooks/opts", "", "x", False),
        (".git/hooks/strategy", "", "x", False),
        (".git/config", "", PLAIN, True),
        (".git/hooks/x", "", "", False),
    ],
)
def test_what_git_writes_while_it_works_is_plain(
    path: str, old: str, new: str, *, expected: bool
) -> None:
    assert is_plain_change(path, old, new) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("url = https://example.org/x.git", "url = https://example.com/x.git"),
        ("url = https://example.org/x.git", "url = https://example.org/x.git\nurl = https://e.org"),
        ("remote = origin", "remote = other"),
    ],
)
def test_an_address_is_plain_only_where_there_was_none(old: str, new: str) -> None:
    assert not adds_plain_settings(PLAIN, PLAIN.replace(old, new))
    assert adds_plain_settings(PLAIN, f'{PLAIN}[remote "o"]\n url = https://example.com/x\n')
    assert adds_plain_settings(PLAIN, "")


def test_a_branch_keeps_the_remote_that_it_uses() -> None:
    remote = PLAIN[PLAIN.index("[remote") : PLAIN.index("[branch")]
    without = PLAIN.replace(remote, "")

    assert not adds_plain_settings(PLAIN, without)
    assert not adds_plain_settings(PLAIN, PLAIN.replace("\turl = https://example.org/x.git\n", ""))
    assert not adds_plain_settings("", without)
    assert adds_plain_settings(without, without)
    assert adds_plain_settings(PLAIN, without.replace("\tremote = origin\n", ""))
    assert adds_plain_settings("", without.replace("= origin", "= ."))
    own = remote.replace("https", "ssh")
    assert adds_plain_settings(own, own + without)
    assert plain_settings(own.replace("ssh:", "") + without) == plain_settings(
        PLAIN[: PLAIN.index("[remote")] + PLAIN[PLAIN.index("[user") :]
    )


def test_lines_that_change_their_meaning_are_not_plain() -> None:
    own = "[alias]\n\tfsmonitor = ./x\n[core]\n\teditor = vi \\\n\t-e\n"

    assert not adds_plain_settings(own, "[core]\n\tfsmonitor = ./x\n")
    assert not adds_plain_settings(own, own.replace("-e", "name = x"))
    assert adds_plain_settings(own, own)


def test_very_many_settings_take_little_time() -> None:
    old, new = (
        "[core]\n" + "".join(f"name = {'a' * 24}{end}{number:06}\n" for number in range(20_000))
        for end in ("a", "b")
    )

    assert adds_plain_settings(old, new)


def test_files_that_git_names_are_found() -> None:
    text = (
        '[core]\n\tbare = false\n\thooksPath = .githooks\n\tfsmonitor = "tools/x -v"\n'
        '[include]\n\tpath = ../more\n# comment\n[includeIf "onbranch:a=b"] path = other\n'
        '[branch "x"]\n\tdescription = mends main.py\n'
    )

    assert find_pointers("config", text) == [
        (".githooks", ".git/hooks"),
        ("tools/x", ".envrc"),
        ("-v", ".envrc"),
        ("../more", ".git/config"),
        ("other", ".git/config"),
    ]
    assert find_pointers(".git", "gitdir: ../store\n") == [("../store", ".git")]
    assert find_pointers("commondir", "../..\n") == [("../..", ".git")]


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


HOSTILE = ("a", "= ", "a ", "/ ", "a/", "=", " = ", '"', "[", '[core "', "url = https://", "a\\")


@requirement("B-command")
@pytest.mark.parametrize("part", HOSTILE)
def test_a_line_of_any_length_takes_little_time(part: str) -> None:
    line = (part * 200_000)[:200_000]
    before = time.process_time()

    for text in (line, f"[core]\n\t{line}x\n", f"path = {line}", f'[remote "{line}'):
        find_pointers("config", text)
        find_pointers(".git", text)
        plain_settings(text)
        for path in (".git/config", ".git/rebase-merge/git-rebase-todo", ".git/hooks/x"):
            is_plain_change(path, text, f"{text}y")
    is_obeyed(line)

    # A search that tries each place in the line anew takes minutes.
    assert time.process_time() - before < 2


def test_the_pointers_of_one_file_are_limited() -> None:
    words = "".join(f"\tx = a/{number} a/b\n" for number in range(2 * MAX_POINTERS))

    assert len(find_pointers("config", f"[x]\n{words}")) == MAX_POINTERS


def test_a_very_long_line_is_never_plain_and_points_to_nothing() -> None:
    long = f"[user]\n\tname = {'a' * 5000}\n"

    assert not adds_plain_settings("", long)
    assert not adds_plain_settings(long, f"{long}\temail = a@b\n")
    assert plain_settings(f"{long}{PLAIN}").split() == PLAIN.split()
    assert find_pointers("config", f"[x]\n\ty = {'a/' * 5000}\n\tz = b/c\n") == [("b/c", ".envrc")]


def test_a_path_that_no_program_can_open_is_asked_about_at_once() -> None:
    before = time.process_time()

    assert is_obeyed("a/" * 100_000)
    assert time.process_time() - before < 0.2
    assert not is_obeyed("a/" * 1000)
