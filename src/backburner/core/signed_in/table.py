"""The table of subcommands that programs with a sign-in offer, with their options.

The names of options are those of the programs' own manuals. An option that is left out needs
approval each time; see `rules`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROGRAMS = ("aws", "gh", "git", "kubectl", "npm")

_SHAPES = {
    "address": r"https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9_./~-]+",
    "branch": r"[A-Za-z0-9_][A-Za-z0-9_./-]*",
    "bucket": r"s3://[a-z0-9.-]+(/[A-Za-z0-9_./=-]*)?",
    "context": r"[A-Za-z0-9_][A-Za-z0-9_.:/@-]*",
    "duration": r"[0-9]+(s|m|h)",
    "endpoint": r"(?!graphql)[A-Za-z0-9_][A-Za-z0-9_./?=&%-]*",
    "fields": r"[A-Za-z]+(,[A-Za-z]+)*",
    "folder": r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    "format": r"json|yaml|name|wide|text|table",
    "label": r"[A-Za-z0-9_][A-Za-z0-9_ .:/-]*",
    "login": r"@me|[A-Za-z0-9][A-Za-z0-9-]*",
    "name": r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    "number": r"[0-9]{1,18}",
    "package": r"(@[a-z0-9-][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9._^-]+)?",
    "refspec": r"\+?[A-Za-z0-9_][A-Za-z0-9_./-]*(:[A-Za-z0-9_][A-Za-z0-9_./-]*)?",
    "repository": r"[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*",
    # A lasting grant for secrets would be one for all of them.
    "resource": r"(?!secret)[a-z]+(\.[a-z0-9.-]+)?",
    "selector": r"[A-Za-z0-9_][A-Za-z0-9_./=!,-]*",
    "text": r"(?s)[^-@].*",
    "word": r"[a-z_]+",
}
_FLAG = ""
#: Arguments that kubectl also takes as one: `deployment/web`.
_RESOURCE_NAME = ("resource", "name")


@dataclass(frozen=True, slots=True)
class _Shape:
    #: Empty for an option without a value.
    name: str
    #: Part of a grant, so it does not vary.
    pinned: bool

    @classmethod
    def of(cls, text: str) -> "_Shape":
        return cls(text.removeprefix("="), text.startswith("="))

    def fits(self, value: str) -> bool:
        return re.fullmatch(_SHAPES[self.name], value) is not None


@dataclass(frozen=True, slots=True)
class Subcommand:
    program: str
    words: tuple[str, ...]
    #: Of arguments without a name.
    arguments: tuple[_Shape, ...]
    #: By each of their names; the last name of an option is the one in a grant.
    options: Mapping[str, tuple[str, _Shape]]
    reads: bool
    needs: int

    def parse(self, arguments: Sequence[str]) -> tuple[str, ...] | None:
        """Return the parts that do not vary; None if the table does not know it exactly."""
        options: dict[str, tuple[str, _Shape]] = {}
        values: list[str] = []
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                values.append(word)
                continue
            name, sign, value = word.partition("=")
            if name not in self.options or (sign and not name.startswith("--")):
                return None
            name, shape = self.options[name]
            if name in options or (sign and shape.name == _FLAG):
                return None
            if shape.name != _FLAG and not sign:
                if not rest:
                    return None
                value = rest.pop(0)
            if shape.name != _FLAG and not shape.fits(value):
                return None
            options[name] = (value, shape)
        return self._fixed(options, values)

    def _fixed(
        self, options: Mapping[str, tuple[str, _Shape]], values: Sequence[str]
    ) -> tuple[str, ...] | None:
        if len(values) == 1 and tuple(shape.name for shape in self.arguments) == _RESOURCE_NAME:
            values = values[0].split("/", 1)
        if not self.needs <= len(values) <= len(self.arguments):
            return None
        pairs = list(zip(values, self.arguments, strict=False))
        if not all(shape.fits(value) for value, shape in pairs):
            return None
        named = (
            f"{name}={value}" for name, (value, shape) in sorted(options.items()) if shape.pinned
        )
        return (*(value for value, shape in pairs if shape.pinned), *named)


def define_subcommand(
    line: str, options: str = "", arguments: str = "", *, reads: bool = True, needs: int = 0
) -> Subcommand:
    """Define a subcommand: options as `-L/--limit:number`, with `:=` if they do not vary."""
    program, *words = line.split()
    known = {}
    for option in options.split():
        names, _, shape = option.partition(":")
        for name in names.split("/"):
            known[name] = (names.split("/")[-1], _Shape.of(shape))
    shapes = tuple(map(_Shape.of, arguments.split()))
    return Subcommand(program, tuple(words), shapes, known, reads, needs)


_REPO = "-R/--repo:=repository"
_LIST = f"{_REPO} -L/--limit:number --json:fields"
_PLACE = "-n/--namespace:=name --context:=context"
_KUBECTL_LIST = f"{_PLACE} -l/--selector:selector -o/--output:format --no-headers --show-labels"
_QUIET = "-q/--quiet -v/--verbose"
AWS_OPTIONS = "--region:=name --profile:=name --output:format --max-items:number --page-size:number"

_TABLE = (
    define_subcommand("gh api", "--paginate -i/--include", "=endpoint", needs=1),
    define_subcommand("gh cache list", _LIST),
    define_subcommand(
        "gh issue list",
        f"{_LIST} -a/--assignee:login -A/--author:login -l/--label:label -m/--milestone:label"
        " -s/--state:word",
    ),
    define_subcommand("gh issue view", f"{_REPO} -c/--comments --json:fields", "number", needs=1),
    define_subcommand("gh label list", _LIST),
    define_subcommand("gh pr checks", f"{_REPO} --required --json:fields", "number", needs=1),
    define_subcommand("gh pr diff", f"{_REPO} --name-only --patch", "number", needs=1),
    define_subcommand(
        "gh pr list",
        f"{_LIST} -a/--assignee:login -A/--author:login -B/--base:branch -d/--draft"
        " -H/--head:branch -l/--label:label -s/--state:word",
    ),
    define_subcommand("gh pr view", f"{_REPO} -c/--comments --json:fields", "number", needs=1),
    define_subcommand("gh release list", f"{_LIST} --exclude-drafts --exclude-pre-releases"),
    define_subcommand("gh release view", f"{_REPO} --json:fields", "name"),
    define_subcommand("gh repo view", "-b/--branch:branch --json:fields", "=repository", needs=1),
    define_subcommand(
        "gh run list",
        f"{_LIST} -a/--all -b/--branch:branch -c/--commit:name -e/--event:word -s/--status:word"
        " -u/--user:login -w/--workflow:label",
    ),
    define_subcommand(
        "gh run view",
        f"{_REPO} -a/--attempt:number --exit-status -j/--job:number --log --log-failed"
        " -v/--verbose --json:fields",
        "number",
    ),
    define_subcommand("gh workflow list", f"{_LIST} -a/--all"),
    define_subcommand(
        "gh issue close",
        f"{_REPO} -c/--comment:text -r/--reason:label",
        "number",
        reads=False,
        needs=1,
    ),
    define_subcommand(
        "gh issue comment", f"{_REPO} -b/--body:text", "number", reads=False, needs=1
    ),
    define_subcommand(
        "gh issue create", f"{_REPO} -t/--title:text -b/--body:text -l/--label:label", reads=False
    ),
    define_subcommand("gh pr comment", f"{_REPO} -b/--body:text", "number", reads=False, needs=1),
    define_subcommand(
        "gh pr merge",
        f"{_REPO} -s/--squash -m/--merge -r/--rebase -d/--delete-branch --auto",
        "number",
        reads=False,
        needs=1,
    ),
    define_subcommand("gh run cancel", _REPO, "number", reads=False, needs=1),
    define_subcommand("gh run rerun", f"{_REPO} --failed", "number", reads=False, needs=1),
    define_subcommand("gh workflow run", f"{_REPO} -r/--ref:branch", "name", reads=False, needs=1),
    define_subcommand(
        "git fetch", f"{_QUIET} -p/--prune --tags --dry-run", "=name branch branch", needs=1
    ),
    define_subcommand("git ls-remote", "-q/--quiet --heads --tags --refs", "=name branch", needs=1),
    define_subcommand(
        "git clone",
        f"{_QUIET} --depth:number -b/--branch:branch",
        "address folder",
        reads=False,
        needs=1,
    ),
    define_subcommand(
        "git pull", f"{_QUIET} --ff-only -r/--rebase", "name branch", reads=False, needs=1
    ),
    define_subcommand(
        "git push",
        f"{_QUIET} -u/--set-upstream --tags --dry-run --force-with-lease",
        "name refspec refspec",
        reads=False,
        needs=1,
    ),
    define_subcommand("kubectl api-resources", "-o/--output:format"),
    define_subcommand(
        "kubectl describe", f"{_PLACE} -l/--selector:selector", "=resource name", needs=1
    ),
    define_subcommand("kubectl events", f"{_PLACE} -A/--all-namespaces:="),
    define_subcommand(
        "kubectl get", f"{_KUBECTL_LIST} -A/--all-namespaces:=", "=resource name", needs=1
    ),
    define_subcommand(
        "kubectl logs",
        f"{_PLACE} -c/--container:name --tail:number --since:duration -p/--previous --timestamps",
        "name",
        needs=1,
    ),
    define_subcommand(
        "kubectl rollout status", f"{_PLACE} --timeout:duration", "=resource name", needs=2
    ),
    define_subcommand("kubectl top", f"{_PLACE} -l/--selector:selector", "=resource name", needs=1),
    define_subcommand("kubectl version", "-o/--output:format"),
    define_subcommand("kubectl delete", _PLACE, "resource name", reads=False, needs=2),
    define_subcommand("kubectl rollout restart", _PLACE, "resource name", reads=False, needs=2),
    define_subcommand(
        "kubectl scale", f"{_PLACE} --replicas:number", "resource name", reads=False, needs=2
    ),
    define_subcommand("npm dist-tag ls", "--json", "package", needs=1),
    define_subcommand("npm owner ls", "--json", "package", needs=1),
    define_subcommand("npm ping", "--json"),
    define_subcommand("npm search", "--json --searchlimit:number", "label label label", needs=1),
    define_subcommand("npm view", "--json", "package name name", needs=1),
    define_subcommand("npm whoami", "--json"),
    define_subcommand("npm dist-tag add", "", "package name", reads=False, needs=1),
    define_subcommand("aws s3 ls", AWS_OPTIONS, "=bucket", needs=0),
    define_subcommand("aws sts get-caller-identity", AWS_OPTIONS),
)
BY_PROGRAM = {name: [entry for entry in _TABLE if entry.program == name] for name in PROGRAMS}

_KUBECTL_OFFERED = """
    annotate api-resources api-versions apply auth autoscale cluster-info cordon create delete
    describe drain events exec explain expose get label logs patch replace rollout run scale set
    taint top uncordon version wait
""".split()
#: The subcommands that are offered, by their first word; an empty list for those without a second.
OFFERED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "gh": {
        "api": (),
        "cache": "delete list".split(),
        "gist": "list view".split(),
        "issue": "close comment create delete edit list lock pin reopen unlock unpin view".split(),
        "label": "create delete edit list".split(),
        "org": ["list"],
        "pr": (
            "checks close comment diff edit list lock merge ready reopen review unlock view".split()
        ),
        "release": "create delete download edit list upload view".split(),
        "repo": "edit list view".split(),
        "ruleset": "check list view".split(),
        "run": "cancel delete download list rerun view watch".split(),
        "search": "code commits issues prs repos".split(),
        "status": (),
        "variable": "delete get list set".split(),
        "workflow": "disable enable list run view".split(),
    },
    "git": dict.fromkeys("clone fetch ls-remote pull push".split(), ()),
    "kubectl": dict.fromkeys(_KUBECTL_OFFERED, ()),
    "npm": {
        "access": (),
        "deprecate": (),
        "dist-tag": "add ls rm".split(),
        "org": (),
        "owner": "add ls rm".split(),
        "ping": (),
        "search": (),
        "team": (),
        "view": (),
        "whoami": (),
    },
}
