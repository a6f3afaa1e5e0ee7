"""Runs a program with its own sign-in, held by the kernel so that nothing else sees it.

The program gets a private copy of the sign-in, in a folder that is removed afterwards. It can use
the network and the folder of its conversation, and no other file of a user; it executes nothing but
itself, and most programs can start no process at all. What they print is searched for the sign-in.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from backburner.core.commands import Cage
from backburner.core.errors import BadRequest, ProcessFailed
from backburner.core.signed_in import PROGRAMS
from backburner.ports import CommandResult, SignInState
from backburner.process.command import Command
from backburner.process.confinement import (
    Confinement,
    ProcessLimits,
    confine_to,
    control_groups,
    memory_limit,
)
from backburner.process.run import run
from backburner.process.shell import HOME, TEMPORARY, run_bounded, temporary_folder, user_name
from backburner.process.sign_ins.found_program import FoundProgram, find_program
from backburner.process.sign_ins.sign_in import Owner, SignIn, read_sign_in

#: Shorter ones are part of other words.
_MIN_SECRET_CHARS = 6
_CHECK_TIMEOUT = timedelta(seconds=20)
#: A file that never exists, in folders that we make.
_NOTHING = "nothing"
#: Programs that start others of their own.
_STARTS_OWN = frozenset({"git"})
#: Programs that obey files of the folder they are in, so they get an empty one.
_WITHOUT_FOLDER = frozenset({"npm"})
#: Settings of a repository with which git runs no program and trusts no other server. Names of
#: sections and keys are in lower case in what git lists.
_GIT_PLAIN = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|longpaths|quotepath|abbrev)"
    r"|extensions\.(objectformat|worktreeconfig)|user\.(name|email)"
    r"|remote\..+\.(url|pushurl|fetch|tagopt|prune|prunetags|skipfetchall)"
    r"|branch\..+\.(remote|pushremote|merge|rebase|description|vscode-merge-base|gh-merge-base)"
    r"|submodule\..+\.(url|active)|pull\.(rebase|ff)|push\.(default|autosetupremote|followtags)"
    r"|fetch\.(prune|prunetags)|merge\.(ff|conflictstyle)|rebase\.autostash|init\.defaultbranch"
    r"|(advice|color)\..+"
)
_GIT_SCOPES = frozenset({"system", "global", "local", "worktree", "command"})
#: Come before the settings of a repository.
_GIT_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "",
    "core.pager": "cat",
    "core.editor": "false",
    "credential.helper": "",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
    "http.followRedirects": "false",
    "http.sslVerify": "true",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.bareRepository": "explicit",
}


@dataclass(frozen=True, slots=True)
class _Prepared:
    program: FoundProgram
    sign_in: SignIn


class SignedInPrograms:
    """The programs of one owner, with the sign-ins in their home folder and environment.

    `agents` are folders that agents write, and `readable` those that their commands read besides
    the system's: a program or a sign-in in one of them is refused. Programs are ended when the
    `disk` of the server is almost full.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        agents: Iterable[Path] = (),
        readable: Iterable[Path] = (),
        disk: Path | None = None,
    ) -> None:
        self._owner = owner
        self._agents = tuple(agents)
        self._readable = tuple(readable)
        self._disk = disk

    def describe(
        self, program: str, folder: Path | None = None, *, agents: Sequence[Path] = ()
    ) -> str:
        """Name the account of a sign-in. Raises `ProcessFailed` with the reason if there is none.

        Blocking: call in threads.
        """
        return self._prepare(program, folder, agents).sign_in.account

    def states(self) -> Sequence[SignInState]:
        """Describe the sign-in of each program, or why it cannot be used."""
        found = []
        for program in sorted(PROGRAMS):
            try:
                found.append(SignInState(program, account=self.describe(program)))
            except ProcessFailed as error:
                found.append(SignInState(program, missing=error.message, hint=error.hint))
        return found

    async def run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        below: str,
        within: timedelta,
        cage: Cage,
        agents: Sequence[Path] = (),
    ) -> CommandResult:
        """Run a program in a folder below that of its conversation."""
        prepared = await asyncio.to_thread(self._prepare, program, folder, agents)
        place = await asyncio.to_thread(_find_folder, folder, below)
        async with temporary_folder() as temporary:
            await asyncio.to_thread(_write_files, temporary / HOME, prepared.sign_in.files)
            if program == "git":
                await self._check_git_settings(prepared.program, folder, place)
            command = await asyncio.to_thread(
                self._command, program, prepared, arguments, folder, place, temporary, cage
            )
            secrets = prepared.sign_in.secrets
            long = [secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS]
            return await run_bounded(command, within, long)

    def _prepare(self, program: str, folder: Path | None, others: Sequence[Path] = ()) -> _Prepared:
        agents = (*self._agents, *others, *((folder,) if folder is not None else ()))
        found = find_program(program, self._owner.variables.get("PATH", ""), agents)
        sign_in = read_sign_in(program, self._owner)
        confinement = confine_to(*agents, readable=self._readable)
        for source in sign_in.sources:
            if confinement.can_read(source):
                raise ProcessFailed(
                    f"The sign-in of {program} is not used, because commands of agents can read"
                    f" {source}.",
                    hint="Move it out of system folders, of those in `readable`, and of folders"
                    " in which agents work.",
                    permanent=True,
                )
        return _Prepared(found, sign_in)

    async def _check_git_settings(self, git: FoundProgram, folder: Path, place: Path) -> None:
        """Refuse a repository whose settings could send the sign-in elsewhere."""
        async with temporary_folder() as temporary:
            listing = ("config", "--null", "--list", "--show-scope", "--name-only")
            command = await asyncio.to_thread(
                self._command,
                "git",
                _Prepared(git, SignIn(account="", secrets=frozenset())),
                listing,
                folder,
                place,
                temporary,
                Cage.LOOK,
            )
            command = replace(
                command,
                confinement=replace(_required(command.confinement), network=False),
            )
            listed = await run(command, within=_CHECK_TIMEOUT)
        if not listed.exit.ok or listed.stdout.omitted:
            raise ProcessFailed("git could not list the settings of the repository.")
        *fields, end = listed.stdout.text.split("\0")
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        if end or len(fields) % 2 or not all(scope in _GIT_SCOPES for scope, _ in pairs):
            raise ProcessFailed("git did not list the settings of the repository as expected.")
        for scope, name in pairs:
            if scope in ("local", "worktree") and not _GIT_PLAIN.fullmatch(name):
                raise ProcessFailed(
                    f"git was not run: the repository has the setting {name}, which could send the"
                    " sign-in elsewhere.",
                    hint="Remove it with `git config --unset`, or work in another clone.",
                    permanent=True,
                )

    def _command(
        self,
        program: str,
        prepared: _Prepared,
        arguments: Sequence[str],
        folder: Path,
        place: Path,
        temporary: Path,
        cage: Cage,
    ) -> Command:
        home, sign_in = temporary / HOME, prepared.sign_in
        if program in _WITHOUT_FOLDER:
            place = temporary / TEMPORARY
        environment = {
            # Nothing is found along it: programs are executed by the kernel's list.
            "PATH": str(temporary / _NOTHING),
            "HOME": str(home),
            "PWD": str(place),
            "USER": user_name(),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "PAGER": "cat",
            "TMPDIR": str(temporary / TEMPORARY),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(temporary / TEMPORARY),
        }
        switches = _switches(program, home, temporary, folder)
        return Command(
            argv=(*prepared.program.argv, *arguments),
            env={**environment, **switches, **sign_in.variables},
            cwd=place,
            confinement=self._confinement(program, prepared.program, folder, temporary, cage),
            limits=ProcessLimits(
                max_memory_bytes=memory_limit(),
                disk=self._disk,
                temporary=temporary,
                groups=control_groups(),
            ),
        )

    def _confinement(
        self, program: str, found: FoundProgram, folder: Path, temporary: Path, cage: Cage
    ) -> Confinement:
        writable, readable = [temporary], [found.path]
        direct = []
        if program not in _WITHOUT_FOLDER:
            (readable if cage is Cage.LOOK else writable).append(folder)
            direct.append(folder)
        held = confine_to(*writable, readable=readable, direct=direct, sees_processes=False)
        return replace(
            held,
            executable=found.executable,
            starts_programs=program in _STARTS_OWN,
            # Not even about itself: its environment may hold the sign-in.
            process_namespace=False,
        )


def _switches(program: str, home: Path, temporary: Path, folder: Path) -> Mapping[str, str]:
    """Return the variables that switch off scripts, hooks, aliases, pagers and other helpers."""
    nothing = str(temporary / _NOTHING)
    match program:
        case "gh":
            return {
                "GH_CONFIG_DIR": str(home / ".config" / "gh"),
                "GH_PAGER": "",
                "GH_PROMPT_DISABLED": "1",
                "GH_NO_UPDATE_NOTIFIER": "1",
                "GH_NO_EXTENSION_UPDATE_NOTIFIER": "1",
                "GH_SPINNER_DISABLED": "1",
                "GH_TELEMETRY": "0",
            }
        case "kubectl":
            return {
                "KUBECONFIG": str(home / ".kube" / "config"),
                "KUBERC": "off",
                "KUBECTL_KUBERC": "false",
            }
        case "npm":
            return {
                "npm_config_userconfig": str(home / ".npmrc"),
                "npm_config_globalconfig": nothing,
                "npm_config_prefix": nothing,
                "npm_config_cache": str(temporary / TEMPORARY),
                "npm_config_ignore_scripts": "true",
                "npm_config_update_notifier": "false",
                "npm_config_logs_max": "0",
                "npm_config_browser": "false",
            }
        case "aws":
            return {
                "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws" / "credentials"),
                "AWS_CONFIG_FILE": str(home / ".aws" / "config"),
                "AWS_PAGER": "",
                "AWS_CLI_AUTO_PROMPT": "off",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
        case _:
            settings = [
                (f"GIT_CONFIG_{part}_{number}", value)
                for number, pair in enumerate(_GIT_SETTINGS.items())
                for part, value in zip(("KEY", "VALUE"), pair, strict=True)
            ]
            return {
                "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_MERGE_AUTOEDIT": "no",
                "GIT_PAGER": "cat",
                "GIT_CEILING_DIRECTORIES": str(folder.parent),
                "GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)),
                **dict(settings),
            }


def _write_files(home: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)


def _find_folder(folder: Path, below: str) -> Path:
    place = (folder / below).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_dir():
        raise BadRequest(
            f"There is no folder {below} here.", hint="Give a path below the workspace."
        )
    return place


def _required(confinement: Confinement | None) -> Confinement:
    if confinement is None:
        raise ProcessFailed("The program was not run: nothing would confine it.")
    return confinement
