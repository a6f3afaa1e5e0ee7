"""Files that other programs obey: who opens the folder, or runs git in it, does what they say.

So the agent does not change them without its user. Other programs read names without regard to
case on some systems, and so do we.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Self

_NAMES = frozenset(
    """
    .aider.conf.yml .autoenv.zsh .bash_login .bash_logout .bash_profile .bashrc .clinerules
    .crush.json .curlrc .cursorrules .dir-locals-2.el .dir-locals.el .envrc .exrc .gdbinit .ghci
    .gitconfig .goosehints .iex.exs .inputrc .irbrc .lldbinit .mcp.json .netrc .npmrc .nvim.lua
    .nvimrc .ocamlinit .octaverc .pdbrc .pnpmfile.cjs .pre-commit-config.yaml .profile .pryrc
    .pylintrc .pypirc .rdata .renviron .roorules .rprofile .rules .tmux.conf .vimrc .wgetrc
    .windsurfrules .xinitrc .xprofile .yarnrc .yarnrc.yml .zlogin .zprofile .zshenv .zshrc
    agent.md agents.md agents.override.md claude.local.md claude.md crush.json gemini.md
    opencode.json opencode.jsonc pip.conf qwen.md
    """.split()
)
_ENDING = ".code-workspace"
#: The settings of mise, some for one environment each.
_MISE = ("mise.", ".mise.")
#: Files of folders whose other files are not obeyed.
_FILES = {
    ".bundle": frozenset({"config"}),
    ".cargo": frozenset({"config", "config.toml"}),
    ".github": frozenset({"copilot-instructions.md"}),
    ".hg": frozenset({"hgrc", "hgrc-not-shared", "sharedpath"}),
    ".jj": frozenset({"repo"}),
    ".jj/repo": frozenset({"config.toml"}),
    ".mise": frozenset({"config.toml", "config.local.toml"}),
    ".sl": frozenset({"config"}),
    ".yarn": frozenset[str](),
    "mise": frozenset({"config.toml"}),
}
#: Everything in these folders; of some, the name of the folder above counts too.
_FOLDERS = frozenset(
    """
    .agents .amazonq .aws .claude .clinerules .codex .config .continue .cursor .devcontainer .docker
    .gemini .github/instructions .gnupg .helix .husky .idea .junie .kilocode .kiro .kube .local .mvn
    .opencode .roo .ssh .vscode .windsurf .yarn/releases .zed
    """.split()
)
#: The folder of a repository, or a file that says where it is.
GIT_FOLDER = ".git"
SETTINGS_FILES = frozenset({"config", "config.worktree"})
COMMON_FOLDER = "commondir"
#: Files of git that name others.
POINTING_FILES = SETTINGS_FILES | {GIT_FOLDER, COMMON_FOLDER}
_TODO = "git-rebase-todo"
#: How git goes on with what has stopped, by folder. A strategy of merging is a program.
_STRATEGIES = {
    "rebase-merge": frozenset({"strategy", "strategy_opts"}),
    "sequencer": frozenset({"opts"}),
}
_GIT_FILES = SETTINGS_FILES | {"attributes", COMMON_FOLDER, _TODO}
_INFO = "info"
#: Very many files of a repository, none of which is obeyed where it lies.
GIT_OBJECTS = "objects"
_HOOKS = "hooks"
#: Everything in these folders of a repository names an address of a remote.
_GIT_FOLDERS = frozenset({"remotes", "branches"})
#: Where folders of the same names hold references.
_REFERENCES = frozenset({"refs", "heads"})
_SAMPLE = ".sample"

#: Lines of a repository's settings that run nothing: the whole list of those that `git init`,
#: `git clone`, `git remote` and `git branch` write.
_PLAIN_SECTION = re.compile(r'\[(core|user|(remote|branch|submodule) "[\w./-]+")\]')
_PLAIN_SETTING = re.compile(
    r"(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks"
    r"|rebase|active) = \w+|(name|email) = [\w .@+-]*|remote = (\.|[\w-]+)"
    r"|(fetch|merge) = [\w+.*:/-]+|url = https://[\w.~%@:/?=&+-]+"
)
#: Plain only where there was none: they say where the user's next push goes.
_ADDRESS = re.compile(r"(?:url|remote) = .*")
#: Of a rebase, all but those that run a program.
_PLAIN_STEP = re.compile(
    r"#.*|(noop|break|[peds]|pick|edit|drop|squash|[rf]|reword|fixup|[ltmu]|label|reset|merge"
    r"|update-ref)( .*)?"
)
#: What a worktree names the repository that it belongs to.
_PLAIN_COMMON_FOLDER = "../.."

#: Of a line of settings; nobody writes longer ones, so they are never plain and name nothing.
_MAX_LINE_CHARS = 4096
#: The kernel opens no longer paths.
_MAX_PATH_CHARS = 4096
#: A setting may follow its section on the same line.
_SECTION = re.compile(r'\[[^"\]]*("[^"]*")?\]')
#: Of one file; nobody names more in settings, and each is looked for.
MAX_POINTERS = 1000
#: Settings that are no program, for people to read.
_TEXTS = frozenset({"description"})
#: As what a file is watched that is obeyed by itself.
PROGRAM = ".envrc"
_WORD = re.compile(r"""[^\s"'!;&|<>()`]+""")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, as far as the names on the way to it say something about the files in it."""

    name: str = ""
    #: All of them are obeyed.
    is_obeyed: bool = False
    #: It is the folder of a repository, or inside one.
    is_git: bool = False
    #: Git takes it for a repository, whatever its name.
    is_repository: bool = False
    is_hooks: bool = False

    @classmethod
    def at(cls, path: str) -> Self:
        place = cls()
        for name in _split(path):
            place = place.enter(name)
        return place

    @property
    def may_hold_obeyed(self) -> bool:
        """Whether files are obeyed here that are not elsewhere."""
        if self.is_git and self.name == GIT_OBJECTS:
            return False
        is_of_git = self.is_git or self.is_repository or self.is_hooks
        return is_of_git or self.is_obeyed or self.name in _FILES

    def enter(self, name: str) -> Self:
        name = self._known_name(name.casefold())
        is_git = self.is_git or self.is_repository
        is_remotes = is_git and name in _GIT_FOLDERS and self.name not in _REFERENCES
        return type(self)(
            name=name,
            is_obeyed=self.is_obeyed or is_remotes or name in _FOLDERS,
            is_git=self.is_git or name.endswith(GIT_FOLDER),
            is_repository=self.is_repository and (name == _INFO or name in _STRATEGIES),
            is_hooks=self.is_hooks or (is_git and name == _HOOKS),
        )

    def obeys(self, name: str, *, is_link: bool = False) -> bool:
        """Return whether other programs obey a file or link of this folder."""
        name = name.casefold()
        if is_link and (self.is_git or self.is_repository or _is_special(self._known_name(name))):
            return True
        if name in _NAMES or self.is_obeyed or name in _FOLDERS or name == GIT_FOLDER:
            return True
        is_mise = name.startswith(_MISE) and name.endswith(".toml")
        if is_mise or name.endswith(_ENDING) or name in _FILES.get(self.name, ()):
            return True
        if not (self.is_git or self.is_repository or self.is_hooks):
            return False
        is_hook = self.is_hooks and not name.endswith(_SAMPLE)
        is_strategy = name in _STRATEGIES.get(self.name, ())
        return is_hook or is_strategy or name in _GIT_FILES or name == _HOOKS

    def _known_name(self, name: str) -> str:
        """Return the name of a folder of this one, with its own if both together are special."""
        both = f"{self.name}/{name}"
        return both if _is_special(both) else name


def is_obeyed(path: str) -> bool:
    """Return whether other programs obey the file at a path, which is relative to its folder."""
    if len(path) > _MAX_PATH_CHARS:
        return True
    *folders, name = _split(path)
    return Place.at("/".join(folders)).obeys(name)


def is_repository(names: AbstractSet[str]) -> bool:
    """Return whether git takes a folder with these names, in lower case, for a repository."""
    return "head" in names and (COMMON_FOLDER in names or {GIT_OBJECTS, "refs"} <= names)


def is_plain_change(path: str, old: str, new: str) -> bool:
    """Return whether a change of a file of a repository makes git run nothing new."""
    folder, _, name = path.casefold().rpartition("/")
    if name == "config":
        return adds_plain_settings(old, new)
    if name == COMMON_FOLDER:
        above, _, parent = posixpath.dirname(folder).rpartition("/")
        is_worktree = parent == "worktrees" and Place.at(above).is_git
        return is_worktree and new.strip() == _PLAIN_COMMON_FOLDER
    if name in _STRATEGIES.get(posixpath.basename(folder), ()):
        # Without a slash it is one of the user's programs.
        return _adds_nothing(old, new, lambda line: "/" not in line)
    return name == _TODO and _adds_nothing(old, new, lambda line: bool(_PLAIN_STEP.fullmatch(line)))


def adds_plain_settings(old: str, new: str) -> bool:
    """Return whether new settings of a repository make git run nothing that the old ones do not."""
    if any(map(_is_long, _strip_lines(new))):
        return False
    known = _addresses(old)
    if any(known.get(key, lines) != lines for key, lines in _addresses(new).items()):
        return False
    if not _lost_remotes(new) <= _lost_remotes(old):
        return False
    rest = iter(_special_lines(old))
    # In the same order: a line means what the lines before it say.
    return all(line in rest for line in _special_lines(new))


def plain_settings(text: str) -> str:
    """Leave only those sections of a repository's settings that make git run nothing."""
    sections = list[list[str]]([[]])
    for line in _strip_lines(text):
        if line.startswith("["):
            sections.append([])
        sections[-1].append(line)
    kept = [section for section in sections if all(map(_is_plain, section))]
    lost = {f"remote = {name}" for name in _lost_remotes(_join(kept))}
    return _join(section for section in kept if lost.isdisjoint(section))


def find_pointers(name: str, text: str) -> Sequence[tuple[str, str]]:
    """Return the paths that a watched file of git names, and as what git uses each."""
    return list(islice(dict.fromkeys(_find_pointers(name, text)), MAX_POINTERS))


def _find_pointers(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name not in SETTINGS_FILES:
        yield text.strip().removeprefix("gitdir:").strip(), GIT_FOLDER
        return
    for line in _strip_lines(text):
        # Not by a search, which would begin anew at each letter.
        key, sign, value = line[_end_of_section(line) :].partition("=")
        if not sign or _is_plain(line) or _is_long(line):
            continue
        key, value = key.strip().casefold(), value.strip().strip('"')
        if key == "hookspath":
            yield value, f"{GIT_FOLDER}/{_HOOKS}"
        elif key == "path":
            yield value, f"{GIT_FOLDER}/config"
        elif key not in _TEXTS:
            # A program and what it is given; files are watched, and folders of such names are not.
            yield from ((word, PROGRAM) for word in _WORD.findall(value))


def _is_special(folder: str) -> bool:
    return folder in _FOLDERS or folder in _FILES


def _split(path: str) -> Sequence[str]:
    return posixpath.normpath(path).split("/")


def _strip_lines(text: str) -> list[str]:
    return [stripped for line in text.split("\n") if (stripped := line.strip())]


def _join(sections: Iterable[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for section in sections for line in section)


def _end_of_section(line: str) -> int:
    found = _SECTION.match(line)
    return found.end() if found else 0


def _is_long(line: str) -> bool:
    return len(line) > _MAX_LINE_CHARS


def _is_plain(line: str) -> bool:
    if _is_long(line):
        return False
    return bool(_PLAIN_SECTION.fullmatch(line) or _PLAIN_SETTING.fullmatch(line))


def _special_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that may make git run something, each with its section."""
    section, before = "", ""
    for line in _strip_lines(text):
        if line.startswith("["):
            section = line
        is_plain = _PLAIN_SECTION.fullmatch(section) and _is_plain(line)
        if not is_plain or before.endswith("\\"):
            yield section, line
        before = line


def _addresses(text: str) -> dict[tuple[str, str], set[str]]:
    """Return the addresses in each section, by the kind of address."""
    found, section = dict[tuple[str, str], set[str]](), ""
    for line in _strip_lines(text):
        if line.startswith("["):
            section = line
        if _ADDRESS.fullmatch(line):
            found.setdefault((section, line.split()[0]), set()).add(line)
    return found


def _lost_remotes(text: str) -> set[str]:
    """Return the remotes of branches that have no address: git takes their names for paths."""
    found = _addresses(text)
    used = {
        line.split()[-1] for (_, key), lines in found.items() if key == "remote" for line in lines
    }
    return {name for name in used - {"."} if (f'[remote "{name}"]', "url") not in found}


def _adds_nothing(old: str, new: str, is_plain: Callable[[str], bool]) -> bool:
    rest = iter(line for line in _strip_lines(old) if not is_plain(line))
    return all(line in rest for line in _strip_lines(new) if not is_plain(line))
