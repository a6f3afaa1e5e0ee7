"""Files that other programs obey: who opens the folder, or runs git in it, does what they say.

So the agent does not change them without its user. Other programs read names without regard to
case on some systems, and so do we.
"""

import difflib
import posixpath
import re

_NAMES = frozenset(
    """
    .bash_login .bash_logout .bash_profile .bashrc .curlrc .cursorrules .dir-locals.el .envrc .exrc
    .gdbinit .gitconfig .inputrc .lldbinit .mcp.json .netrc .npmrc .nvimrc .pnpmfile.cjs
    .pre-commit-config.yaml .profile .pypirc .tmux.conf .vimrc .wgetrc .windsurfrules .xinitrc
    .xprofile .yarnrc .yarnrc.yml .zlogin .zprofile .zshenv .zshrc
    agents.md agents.override.md claude.md claude.local.md gemini.md pip.conf
    """.split()
)
#: Everything in these folders.
_FOLDERS = frozenset(
    """
    .aws .claude .codex .config .continue .cursor .devcontainer .docker .gemini .gnupg .husky .idea
    .kube .local .ssh .vscode .windsurf .zed
    """.split()
)
#: The folder of a repository, or a file that says where it is.
GIT_FOLDER = ".git"
_GIT_FILES = frozenset({"config", "config.worktree", "attributes"})
_HOOKS = "hooks"
_SAMPLE = ".sample"

#: Lines of a repository's settings that run nothing: the whole list of those that `git init`,
#: `git clone`, `git remote` and `git branch` write.
_PLAIN_SECTION = re.compile(r'\[(core|user|(remote|branch|submodule) "[\w./-]+")\]')
_PLAIN_SETTING = re.compile(
    r"(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks"
    r"|rebase|active) = \w+|(name|email) = [\w .@+-]*|remote = (\.|[\w-]+)"
    r"|(fetch|merge) = [\w+.*:/-]+|url = https://[\w.~%@:/?=&+-]+"
)


def is_obeyed(path: str) -> bool:
    """Return whether other programs obey the file at a path, which is relative to its folder."""
    *folders, name = posixpath.normpath(path).casefold().split("/")
    if name in _NAMES or name in _FOLDERS or name == GIT_FOLDER or _FOLDERS & set(folders):
        return True
    if not any(folder.endswith(GIT_FOLDER) for folder in folders):
        return False
    is_hook = _HOOKS in folders and not name.endswith(_SAMPLE)
    return is_hook or name in _GIT_FILES or name == _HOOKS


def repository_of(path: str) -> str | None:
    """Return the folder of the repository that a file belongs to, if it is inside one."""
    parts = path.split("/")
    for number, part in enumerate(parts[:-1], 1):
        if part.casefold().endswith(GIT_FOLDER):
            return "/".join(parts[:number])
    return None


def adds_plain_settings(old: str, new: str) -> bool:
    """Return whether new settings of a repository make git run nothing that the old ones do not."""
    lines = difflib.ndiff(_strip_lines(old), _strip_lines(new))
    return all(_is_plain(line[2:]) for line in lines if line.startswith("+ "))


def plain_settings(text: str) -> str:
    """Leave only those sections of a repository's settings that make git run nothing."""
    kept, section = list[str](), list[str]()
    for line in [*_strip_lines(text), "["]:
        if line.startswith("["):
            kept += section if all(map(_is_plain, section)) else []
            section = []
        section.append(line)
    return "".join(f"{line}\n" for line in kept)


def _strip_lines(text: str) -> list[str]:
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def _is_plain(line: str) -> bool:
    return bool(_PLAIN_SECTION.fullmatch(line) or _PLAIN_SETTING.fullmatch(line))
