"""A day of ordinary coding: the lines an agent runs, and those that asked by the rule before.

The lines work on the project of `PROJECT`, one after the other.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping

#: Marks a line that needs the network.
NETWORK = "@"

DAY = """
git status
@git fetch
@git pull --rebase
git log --oneline -5
git checkout -b fix-greeting
ls -la
cat README.md
grep -rn greet .
find . -name "*.py"
sed -n 1,20p app.py
@npm install
npm ls
npm test
node lib.js
pytest -q
sed -i s/Hello/Hi/ app.py test_app.py
git diff
pytest -q
git status
git add -A
git commit -m "Shorten the greeting"
@git push -u origin fix-greeting
@gh pr list
@gh pr view 12
make
gcc -Wall -o hello hello.c
./hello
make clean && make
python3 report.py
python3 -c "import json; print(json.load(open('package.json'))['name'])"
@npm view left-pad
@npm view is-odd
@pip install requests
pip list
@curl -s https://api.example.com/health
mkdir -p build
cp README.md build/
mv build/README.md build/notes.md
chmod +x report.py
tar czf build.tgz build
rm -r build build.tgz
npm run build
pytest -q test_app.py -k greet
echo "Greets people." >> README.md
git status
git diff
git stash
git stash pop
git add -A
git commit -m "Describe the program"
@git push
@gh pr view 12
@docker build -t hello .
@curl -s https://api.example.com/health
@git fetch
git rebase main
npm test
pytest -q
git checkout main
git merge fix-greeting
git log --oneline -5
@git push
@gh pr list
git status
""".strip().splitlines()

PROJECT: Mapping[str, str] = {
    ".gitignore": "hello\n*.o\n__pycache__/\n.pytest_cache/\n",
    "README.md": "# Hello\n",
    "app.py": 'def greet(name: str) -> str:\n    return f"Hello {name}"\n',
    "test_app.py": (
        "from app import greet\n\n\n"
        'def test_greet() -> None:\n    assert greet("Ann") == "Hello Ann"\n'
    ),
    "report.py": 'from app import greet\n\nprint(greet("Ben"))\n',
    "lib.js": "module.exports = (a, b) => a + b;\n",
    "lib.test.js": (
        'const test = require("node:test");\nconst assert = require("node:assert");\n'
        'test("adds", () => assert.equal(require("./lib.js")(1, 2), 3));\n'
        'test("starts a program", () => require("child_process").execSync("true"));\n'
    ),
    "package.json": (
        '{"name": "hello", "version": "1.0.0", "scripts":'
        ' {"test": "node --test", "build": "node --check lib.js"}}\n'
    ),
    "hello.c": '#include <stdio.h>\n\nint main(void) { return puts("hello") < 0; }\n',
    "Makefile": (
        "CC = cc\n\nhello: hello.o\n\t$(CC) -o $@ $^\n\n%.o: %.c\n\t$(CC) -O2 -Wall -c $<\n\n"
        "clean:\n\trm -f hello *.o\n"
    ),
    "Hello.java": (
        "public class Hello {\n"
        "    public static void main(String[] names) throws Exception {\n"
        '        Thread other = new Thread(() -> System.out.println("hello from java"));\n'
        "        other.start();\n        other.join();\n    }\n}\n"
    ),
}

#: Of the rule before: commands that run their arguments, so that only the whole line was granted.
WRAPPERS = frozenset(
    """
    ! . ash awk bash builtin bun busybox chroot chrt command coproc csh dash deno doas env eval
    exec expect find fish flock gawk ionice ipython ksh lua make mawk nawk nice node nodejs nohup
    npx nsenter osascript parallel perl php pkexec powershell prlimit pwsh pypy python ruby
    runuser script setpriv setsid sg sh source ssh stdbuf strace su sudo systemd-run taskset tclsh
    tcsh time timeout trap unshare uv uvx watch xargs zsh
    """.split()
)
SHELL_SIGNS = frozenset(";&|<>$`(){}*?[]~#\\\n\r")


def asked_before(lines: Iterable[str], *, kept_words: int | None = None) -> Iterator[bool]:
    """Say of each line whether it asked before cages decided, with "always here" for an answer.

    That covered the lines which begin with the words of the granted one, whatever they do. Users
    could shorten a grant by hand afterwards: `kept_words` is to how many words, each time.
    """
    granted = list[tuple[tuple[str, ...], bool]]()
    for line in lines:
        words = _words(line)
        is_covered = words is not None and any(
            words == known if whole else words[: len(known)] == known for known, whole in granted
        )
        if words is not None and not is_covered:
            whole = _is_wrapper(words[0])
            granted.append((words if whole else words[:kept_words], whole))
        yield not is_covered


def _words(line: str) -> tuple[str, ...] | None:
    # Lines with shell syntax asked each time.
    if SHELL_SIGNS & set(line):
        return None
    words = tuple(shlex.split(line))
    return words if "=" not in words[0] else None


def _is_wrapper(program: str) -> bool:
    name = program.rsplit("/", 1)[-1].casefold()
    return (name.rstrip("0123456789.") or name) in WRAPPERS
