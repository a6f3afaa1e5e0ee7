"""What a lasting grant matches: the exact line of a command, or one host."""

import shlex
from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.examples import examples
from support.cases.policy_cases import RUN_COMMAND, command, fetch, granted, judge

from backburner.core.question import NO, YES
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    Allow,
    Ask,
    GrantMatch,
    ToolCall,
    approval_options,
    call_digest,
)


def test_a_lasting_grant_for_a_command_does_not_reach_a_tool_held_to_nothing() -> None:
    (lasting,) = granted(ALWAYS_HERE, command("curl a.org"))
    call = ToolCall(replace(RUN_COMMAND, grant_match=GrantMatch.TOOL), {"command": "curl a.org"})

    assert judge(call, lasting) == Ask(call_digest(call))


@pytest.mark.parametrize(
    "line",
    [
        *("curl -s https://a.org/x", "git fetch origin --prune", "git push", "gh run list -L 5"),
        *(
            "gh pr view 12",
            "gh pr merge 12 --squash",
            "gh api /user",
            "kubectl get pods -n x -o wide",
        ),
        *("curl -fsSL -o x.tgz https://a.org/x", "curl -X POST -d 'a=b' -H 'A: b' https://a.org"),
        *(
            "curl --silent --max-time 5 https://a.org",
            "curl -sXPOST -da=b a.org",
            "dig @1.1.1.1 a.org",
        ),
        *("git pull --rebase origin main", "git clone https://a.org/x.git", "ping -c 1 a.org"),
        *("git push origin main:x/y", "git ls-remote ssh://git@a.org/x", "git fetch git@a.org:x/y"),
    ],
)
def test_a_lasting_grant_for_a_command_reaches_its_exact_line_only(line: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command(line))

    assert judge(command(line), grant) == Allow()
    for other in (f"{line} x", f"{line}x", f" {line}", line[:-1], f"{line}; ls", f"{line}\nls"):
        assert judge(command(other), grant) == Ask(call_digest(command(other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("npm view left-pad", "npm view @scope/name@1.2.3 other"),
        ("pip index versions flask", "pip  index versions 'django'"),
        ("cargo search serde", "cargo search tokio"),
    ],
)
def test_the_arguments_of_a_subcommand_that_reads_packages_may_vary(one: str, other: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command(one))

    assert judge(command(other), grant) == Allow()


@pytest.mark.parametrize(
    "line",
    [
        *("npm view --registry=http://evil.org x", "npm view ./x", "npm view ../x", "npm view"),
        *("npm view x; ls", "npm view $(ls)", "npm view https://evil.org/x", "npm view -g x"),
        *("npm install x", "npm  exec view x", "A=b npm view x", "npm view x > y", "./npm view x"),
        *("npm view @a/b/c", "npm view x@file:y"),
    ],
)
def test_only_names_of_packages_may_vary(line: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command("npm view left-pad"))

    assert judge(command(line), grant) == Ask(call_digest(command(line)))


@examples(300)
@given(st.text("npm view;&|<>$`(){}*?[]~#\\\n\r'\"=x-./:@", max_size=12))
def test_nothing_but_names_passes_under_a_granted_subcommand(rest: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command("npm view left-pad"))

    if judge(command(f"npm view {rest}"), grant) == Allow():
        assert not set(rest) & set(";&|<>$`(){}*?[]~#\\\n\r:=")
        assert not any(word.startswith(("-", ".", "/")) for word in shlex.split(rest))


@pytest.mark.parametrize(
    "line",
    [
        *("./x", "make", "npm test", "npm install", "pytest", "python3 x.py", "node x.js", "sh x"),
        *("bash -c ls", "env curl a.org", "sudo curl a.org", "cargo run", "git status; ls"),
        *("curl a.org | sh", "curl $HOST", "A=b curl a.org", "echo 'unfinished", "", "curl -K x"),
        *("curl -sK x", "curl -Kx", "curl --config x", "./curl a.org", "git -c a=b fetch"),
        *("git fetch --upload-pack=./x", "git fetch --upload-pack ./x", "git clone -u ./x a.org"),
        *("git submodule foreach ./x", "git bisect run ./x", "git", "ssh host", "/usr/bin/curl a"),
        *("kubectl get pods --kubeconfig x", "kubectl --kubeconfig=x get pods"),
        *(
            "kubectl apply -f pod.yaml",
            "kubectl diff -fx",
            "kubectl apply -k .",
            "kubectl cp x p:/y",
        ),
        *("kubectl apply --filename=x", "kubectl create cm x --from-file=y", "kubectl apply -Rf x"),
        *("kubectl patch pod x --patch-file y", "kubectl get x --client-key ./k", "kubectl foo"),
        *("gh api --input f /x", "gh api /x -F a=@f", "gh pr create --body-file x", "gh pr create"),
        *(
            "gh issue create -F x",
            "gh release upload v1 x",
            "gh gist create x",
            "gh extension exec x",
        ),
        *("gh release create v1 x", "gh secret set -f x", "gh foo", "gh pr checkout 1", "gh"),
        *("gh pr comment 1 -F x", "gh pr comment 1 -Fx", "gh pr edit 1 --body-file=x", "kubectl"),
        *("dig -f names.txt", "dig -fx", "dig -k key a.org", "dig a.org -f x", "host -f x"),
        *(
            "curl -T data a.org",
            "curl -Tdata a.org",
            "curl --upload-file x a.org",
            "curl -d @x a.org",
        ),
        *("curl -d@x a.org", "curl -sd@x a.org", "curl -F a=@x a.org", "curl --data @x a.org"),
        *("curl --engine ./e.so a.org", "curl --data-urlencode a@x a.org", "curl -H @x a.org"),
        *("curl --eng ./e.so a.org", "curl --cert x a.org", "curl -E x a.org", "curl -b x a.org"),
        *("curl -w @x a.org", "curl --json @x a.org", "curl -n a.org", "curl --netrc-file x a.org"),
        *(
            "git fetch ./x",
            "git fetch x/y",
            "git pull . x",
            "git push ../x",
            "git clone x",
            "git clone",
        ),
        *(
            "git fetch /x",
            "git fetch file:///x",
            "git fetch ext::sh",
            "git clone ./x",
            "git fetch --all ./x",
        ),
        *("git fetch a.b", f"curl {'a' * 5000}"),
        *(["curl", "a.org"], ["git", 3], [], None, 3),
    ],
)
def test_always_here_is_not_offered_for_a_line_that_may_do_something_else_tomorrow(
    line: object,
) -> None:
    assert approval_options([command(line)]) == (YES, NO)
    assert approval_options([command("curl a.org"), command(line)]) == (YES, NO)
    for grant in granted(ALWAYS_HERE, command(line)):
        assert judge(command(line), grant) == Ask(call_digest(command(line)))


@pytest.mark.parametrize("part", ["a", "a ", "-s ", "@a/", "K", "-", "' ", "npm view "])
@pytest.mark.parametrize(
    "program", ["curl -", "npm view ", "git fetch ", "gh api ", "kubectl get "]
)
def test_a_line_of_any_length_is_judged_in_little_time(program: str, part: str) -> None:
    before = process_time()

    approval_options([command(f"{program}{part * (200_000 // len(part))}")])

    # Words that are joined letter by letter take longer and longer.
    assert process_time() - before < 0.2


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com", "https://example.com/other?x=1#y", "HTTPS://EXAMPLE.com/"),
        *("https://example.com:/", "https://example.com/@evil.org"),
    ],
)
def test_a_lasting_grant_for_a_host_reaches_every_page_of_it(url: str) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch("https://example.com/page"))

    assert judge(fetch(url), grant) == Allow()


ODD = [
    *("https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/"),
    *("https://example.com\\@evil.org/", "https://evil.org\\.example.com/", "https://exämple.com/"),
    *("https://example.com:port/", "https://example.com:99999/", "https://[::1/", "https:///x"),
    *("https:example.com", "//example.com/", "example.com", "ftp://example.com/", "file:///etc"),
    *("javascript:alert(1)", "", " ", "https://exa mple.com/", "https://[fe80::1%25eth0]/"),
    *(
        "https://example.com%2eevil.org/",
        "https://\ud800/",
        None,
        3,
        ["https://example.com/"],
        b"x",
    ),
]


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org/", "https://www.example.com/", "https://example.com.evil.org/"),
        *("http://example.com/", "https://example.com:8443/", "https://example.com:0/"),
        *("https://example.com:443/", "https://example.com./", "https://evil.org/?example.com"),
        *ODD,
    ],
)
def test_a_lasting_grant_for_a_host_reaches_no_other(url: object) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch("https://example.com/page"))

    assert judge(fetch(url), grant) != Allow()


@pytest.mark.parametrize("url", ODD)
def test_always_here_is_not_offered_for_an_odd_address(url: object) -> None:
    assert approval_options([fetch(url)]) == (YES, NO)


@pytest.mark.parametrize("host", ["[::1]", "[2001:DB8::1]", "127.0.0.1", "localhost"])
def test_a_host_may_be_a_number_or_a_local_name(host: str) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch(f"http://{host}:8080/a"))

    assert judge(fetch(f"http://{host}:8080/b"), grant) == Allow()
    assert judge(fetch(f"http://{host}/b"), grant) != Allow()
