"""Imported commands and their variables: what is allowed, and how they are shown for consent."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from backburner.core.errors import BadRequest
from backburner.core.validation import escape_hidden, hidden_characters
from backburner.core.work.folders import lies_in, overlap

MAX_WORDS = 100
MAX_COMMAND_CHARS = 10_000
MAX_VARIABLES = 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HARMLESS = frozenset(
    (
        "DOTNET_CLI_TELEMETRY_OPTOUT DOTNET_ENVIRONMENT PYTHONDONTWRITEBYTECODE PYTHONIOENCODING"
        " PYTHONUNBUFFERED PYTHONUTF8"
    ).split()
)
#: Variables that make programs load code, start others, or fetch them from elsewhere; no such list
#: is complete.
_LOADS_CODE = re.compile(
    "(?i)"
    # The system, shells and what they start.
    r"LD_.*|DYLD_.*|GLIBC_.*|GCONV_PATH|LOCPATH|OPENSSL_.*|XDG_.*|GTK_.*|GIO_.*|QT_.*"
    r"|BASH_ENV|BASH_FUNC.*|BASHOPTS|SHELLOPTS|PROMPT_COMMAND|PS4|ENV|SHELL|IFS|ZDOTDIR|FPATH"
    r"|PATH|HOME|TMPDIR|EDITOR|VISUAL|PAGER|BROWSER|LESSOPEN|LESSCLOSE"
    # Interpreters.
    r"|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|REPL_EXTERNAL_MODULE|TLS_REJECT_UNAUTHORIZED)"
    r"|ELECTRON_RUN_AS_NODE|PYTHON.*|PERL5.*|PERLLIB|RUBY.*|PHPRC|PHP_INI_SCAN_DIR|LUA_.*"
    r"|.*_OPTS|.*JAVA.*_(OPTIONS|ARGS)|CLASSPATH|DOTNET_.*|CORECLR_.*|COR_(ENABLE_)?PROF.*"
    r"|ERL_.*|ELIXIR_.*|JULIA_.*|R_(HOME|LIBS.*|PROFILE.*|ENVIRON.*)|TCLLIBPATH|GUILE_.*"
    # Package managers, and whom they trust.
    r"|GIT_.*|NPM_CONFIG_.*|YARN_.*|PNPM_.*|BUN_.*|DENO_.*|COREPACK_.*|UV_.*|PIP_.*|PIPX_.*"
    r"|VIRTUAL_ENV|CONDA_.*|GEM_.*|BUNDLE_.*|CARGO_.*|RUSTUP_.*|RUSTC.*|GO(FLAGS|PATH|PROXY|ROOT)"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)
#: Options whose value is a secret, as `--api-key=x` or `--api-key x`.
_SECRET_OPTION = re.compile(r"(?i)--?[a-z0-9_-]*(token|secret|password|passwd|key|-pat)")
#: A user and a password in an address.
_CREDENTIALS = re.compile(r"://[^/@\s]*:[^/@\s]*@")


def check_command(command: Sequence[str]) -> None:
    """Refuse a command that cannot be shown as it is, or that has a secret in it."""
    if len(command) > MAX_WORDS or sum(map(len, command)) > MAX_COMMAND_CHARS:
        raise BadRequest("The command is too long to be agreed to.")
    for word in command:
        if hidden_characters(word) or "\n" in word or "\t" in word:
            shown = escape_hidden(word).replace("\n", "\\n").replace("\t", "\\t")
            raise BadRequest(f"The command has characters that cannot be seen: {shown[:200]}")
        option, has_value, value = word.partition("=")
        is_secret = _SECRET_OPTION.fullmatch(option) and (value or not has_value)
        if is_secret or _CREDENTIALS.search(word):
            what = f"the option {option[:60]}" if is_secret else "an address with a password"
            raise BadRequest(
                f"The command has {what}, and arguments of programs can be read by others on this"
                " machine.",
                hint="Give the secret to the program as a variable in `env`.",
            )
    program = command[0]
    if not program.strip() or (not program.startswith("/") and "/" in program):
        raise BadRequest(
            f"{program[:200]!r} is a path from a folder that is not known here.",
            hint="Write the path from / on.",
        )


def check_environment(environment: Mapping[str, str]) -> None:
    if len(environment) > MAX_VARIABLES:
        raise BadRequest("The program has too many variables.")
    for name in environment:
        if not _VARIABLE.fullmatch(name):
            raise BadRequest(f"{name[:80]!r} is not the name of a variable.")
        if _LOADS_CODE.fullmatch(name) and name not in _HARMLESS:
            raise BadRequest(
                f"The variable {name} can change which code runs, and its value is not shown.",
                hint="Leave it out.",
            )


def check_values(environment: Mapping[str, str]) -> None:
    """Refuse values of variables that no program could be given. They are not quoted: secrets."""
    for name, value in environment.items():
        if "\0" in value:
            raise BadRequest(f"The value of the variable {name} cannot be given to a program.")


def show_command(command: Sequence[str]) -> Sequence[str]:
    """Write a command as it would be typed, a word a line, so that none can hide behind others."""
    return [f"    {shlex.quote(escape_hidden(word))}" for word in command]


def find_paths(command: Sequence[str]) -> Iterator[str]:
    """Yield the paths that a command names, also in options such as `--file=/a`."""
    for word in command:
        _, _, value = word.partition("=")
        yield from (text for text in (word, value) if text.startswith("/"))


def check_out_of_reach(paths: Iterable[str], reachable: Mapping[str, str]) -> None:
    """Refuse paths in places where agents write; all have no links.

    `reachable` has a word for each such place.
    """
    for path in paths:
        for place, meaning in reachable.items():
            if lies_in(path, place):
                raise BadRequest(
                    f"{path} lies in {meaning}, where agents can change it.",
                    hint="Move it elsewhere, and import it from there.",
                )


def check_nothing_shared(places: Iterable[str], reachable: Mapping[str, str]) -> None:
    """Refuse what a program may read if agents write in it or around it; all have no links."""
    for place in places:
        for other, meaning in reachable.items():
            if overlap(place, other):
                raise BadRequest(
                    f"A program that may read {place} could load what agents write in {meaning}.",
                    hint="Install it elsewhere, or let agents only read that folder.",
                )
