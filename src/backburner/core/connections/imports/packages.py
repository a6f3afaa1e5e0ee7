"""Commands that fetch a package and run it: exactly one version of it, or none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from backburner.core.connections.imports.runners import check_no_runner, check_package
from backburner.core.errors import BadRequest


class Registry(StrEnum):
    NPM = "npm"
    PYPI = "PyPI"


_NPM_NAME = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
#: As npm reads versions. It takes anything else for a tag, which its publisher can move.
_NPM_VERSION = re.compile(
    r"(?=.{1,100}$)[0-9]{1,9}(\.[0-9]{1,9}){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
_PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._,-]+\])?")
_PYPI_VERSION = re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", re.ASCII)
#: npx gives the name of a program to a shell.
_PROGRAM = re.compile(r"\w[\w.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    registry: Registry
    name: str
    #: Empty: the command does not say, or names a range or a tag.
    version: str = ""

    @property
    def spec(self) -> str:
        return f"{self.name}{'@' if self.registry is Registry.NPM else '=='}{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command that runs a program of fetched packages."""

    #: Starts the program that fetches.
    runner: tuple[str, ...]
    packages: tuple[Package, ...]
    #: The option that a package follows, before the program is named; empty: the package stands
    #: where the program would.
    option: str = ""
    program: str = ""
    arguments: tuple[str, ...]

    @property
    def unpinned(self) -> tuple[Package, ...]:
        return tuple(one for one in self.packages if not one.version)

    @property
    def command(self) -> tuple[str, ...]:
        if not self.option:
            return (*self.runner, self.packages[0].spec, *self.arguments)
        specs = [word for package in self.packages for word in (self.option, package.spec)]
        return (*self.runner, *specs, self.program, *self.arguments)


def pin(launch: Launch, versions: Mapping[str, str]) -> Launch:
    """Give versions to packages that have none; they have to be exact."""
    pinned = [
        one if one.version else replace(one, version=_exact(one, versions.get(one.name, "")))
        for one in launch.packages
    ]
    return replace(launch, packages=tuple(pinned))


def _exact(package: Package, version: str) -> str:
    pattern = _NPM_VERSION if package.registry is Registry.NPM else _PYPI_VERSION
    if not pattern.fullmatch(version):
        shown = f"{version[:40]!r} is not" if version else f"{package.name} has no"
        raise BadRequest(
            f"{shown} exact version, and without one another program could run tomorrow.",
            hint=f"Give one: --version {package.name}=1.2.3",
        )
    return version


def read_launch(command: Sequence[str]) -> Launch | None:
    """Read a command that fetches packages; None: it runs a program that is here.

    Raises `BadRequest` for commands that run what nobody can pin.
    """
    program, *arguments = command
    launch = _read(program, arguments)
    if launch is None:
        check_no_runner(program, arguments)
    else:
        _check(launch)
    return launch


def _read(program: str, arguments: Sequence[str]) -> Launch | None:
    match [program.rpartition("/")[2], *arguments]:
        case ["npx", *rest]:
            return _read_npm((program,), rest, yes="--yes")
        case ["bunx" | "pnpx", *rest]:
            return _read_npm((program,), rest, yes="")
        case ["pnpm" | "yarn", "dlx", *rest]:
            return _read_npm((program, "dlx"), rest, yes="")
        case ["uvx", *rest]:
            return _read_pypi((program,), rest, option="--from")
        case ["uv", "tool", "run", *rest]:
            return _read_pypi((program, "tool", "run"), rest, option="--from")
        case ["pipx", "run", *rest]:
            return _read_pypi((program, "run"), rest, option="--spec")
        case _:
            return None


def _check(launch: Launch) -> None:
    """Refuse packages and programs that run others: those would have no version."""
    for package in launch.packages:
        check_package(package.name)
    first = launch.packages[0].name
    if launch.program:
        if not _PROGRAM.fullmatch(launch.program):
            raise BadRequest(f"{launch.program[:80]!r} is not the name of a program.")
        check_no_runner(launch.program, launch.arguments)
    elif not first.startswith("@"):
        # Its program has its name. With a scope that says nothing: `@a/git` is not git.
        check_no_runner(first, launch.arguments)


def _read_npm(runner: tuple[str, ...], words: list[str], *, yes: str) -> Launch:
    runs_first = {"-y", "--yes", "-q", "--quiet", "--bun", "-s", "--silent"}
    specs, rest = _read_options(runner, words, {"-p", "--package"}, runs_first)
    if not rest:
        raise BadRequest(f"{runner[0]} is given no package or no program.")
    first, *arguments = rest
    full = (*runner, yes) if yes else runner
    if not specs:
        package = _npm_package(first)
        return Launch(runner=full, packages=(package,), arguments=tuple(arguments))
    return Launch(
        runner=full,
        packages=tuple(map(_npm_package, specs)),
        option="--package",
        program=first,
        arguments=tuple(arguments),
    )


def _read_pypi(runner: tuple[str, ...], words: list[str], *, option: str) -> Launch:
    specs, rest = _read_options(runner, words, {option}, {"-q", "--quiet"})
    if len(specs) > 1 or not rest:
        raise BadRequest(f"{runner[0]} is given no package, or more than one.")
    package = _pypi_package(specs[0] if specs else rest[0])
    program = rest[0] if specs else re.sub(r"\[.*", "", package.name)
    return Launch(
        runner=runner,
        packages=(package,),
        option=option,
        program=program,
        arguments=tuple(rest[1:]),
    )


def _read_options(
    runner: tuple[str, ...], words: list[str], with_value: set[str], flags: set[str]
) -> tuple[list[str], list[str]]:
    """Split words into the values of an option, and what follows the options."""
    values, at = list[str](), 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        name, has_value, value = word.partition("=")
        if word == "--":
            break
        if word in flags:
            continue
        if name not in with_value or not (has_value or at < len(words)):
            raise _refused_option(runner[0], name)
        if not has_value:
            value = words[at]
            at += 1
        values.append(value)
    return values, words[at:]


def _refused_option(program: str, option: str) -> BadRequest:
    return BadRequest(
        f"The option {option[:60]} of {program.rpartition('/')[2]} is not taken over: it can"
        " change what runs.",
        hint="Leave it out, or let the operator define the program in the settings.",
    )


def _npm_package(spec: str) -> Package:
    at = spec.rfind("@")
    name, version = (spec[:at], spec[at + 1 :]) if at > 0 else (spec, "")
    if not _NPM_NAME.fullmatch(name):
        raise BadRequest(
            f"{spec[:80]!r} is not a package of npm's registry.",
            hint="Install it, and name its program instead.",
        )
    exact = version if _NPM_VERSION.fullmatch(version) else ""
    return Package(registry=Registry.NPM, name=name, version=exact)


def _pypi_package(spec: str) -> Package:
    name, _, version = spec.replace("==", "@", 1).partition("@")
    # A range is no version, but names a package all the same.
    plain = re.split(r"[<>=!~;,\s]", name, maxsplit=1)[0] if "[" not in name else name
    if not _PYPI_NAME.fullmatch(plain) or "/" in version:
        raise BadRequest(
            f"{spec[:80]!r} is not a package of PyPI.",
            hint="Install it, and name its program instead.",
        )
    exact = version if plain == name and _PYPI_VERSION.fullmatch(version) else ""
    return Package(registry=Registry.PYPI, name=plain, version=exact)
