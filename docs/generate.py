"""Writes the pages of docs/ that are made from the code; `--check` only looks for stale ones."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from backburner.settings import (
    CLAUDE_ADDRESS,
    CLAUDE_MODEL,
    FILE_NAME,
    LIST_PRICES,
    LOCAL_SEATS,
    MODELS_NAME,
    SEATS,
    Settings,
    secret_names,
    takes,
    variable,
)

REFERENCE = Path(__file__).parent / "reference"

SETTINGS = f"""\
# Settings

<!-- Written by `python3 dev.py docs` from src/backburner/settings. -->

The strongest source wins: options of a command, environment variables, a TOML file,
what `backburner setup` keeps in `{MODELS_NAME}` in the data folder, the defaults.
The file is the one that `--config` or `{variable("config")}` names,
else `{FILE_NAME}` in the data folder.
In the file a setting has its name in small letters: `port = 8484`.
An environment variable that is empty counts as not set.
A setting that does not exist, or a value that does not fit, stops the start.
A secret may also lie in a file, whose last line break is left out:
`{variable("database_url")}_FILE` names it.

| Variable | Default | Takes | Meaning |
|---|---|---|---|
"""

PROFILES = f"""
## Profiles

A profile is a model with a name. `backburner setup` makes one; so does a table in the file:

```toml
profile = "claude"
background_profile = "local"

[profiles.claude]
engine = "claude"
key_file = "/run/secrets/key"

[profiles.local]
engine = "openai"
address = "http://127.0.0.1:11434/v1"
model = "qwen3:8b"
```

or a variable:

```sh
export {variable("profiles")}='{{"claude": {{"engine": "claude", "key_file": "/run/secrets/key"}}}}'
```

A profile comes from one source as a whole: the strongest that has one of that name.

| Key | Takes |
|---|---|
| `engine` | `claude`, `openai` (any server that speaks its protocol) or `demo` |
| `model` | the model's name; left out for `claude`, it is `{CLAUDE_MODEL}` |
| `key`, `key_file` | a key of the API, or a file with nothing else in it |
| `token`, `token_file` | instead, for `claude`: a subscription's, from `claude setup-token` |
| `address` | where the API is; needed for `openai`, and {CLAUDE_ADDRESS} otherwise |
| `seats` | how many runs at once: {SEATS}; {LOCAL_SEATS} for an `openai` of one's own network |
| `price` | what the model costs, as in `{variable("prices")}` |

## Prices

List prices, in dollars for a million tokens. They may have changed:
what `{variable("prices")}` or the `price` of a profile says wins.

| The model's name begins with | Price |
|---|---|
"""


def settings_page() -> str:
    rows = "".join(_row(name) for name in Settings.model_fields)
    prices = (f"| `{name}` | {price} |\n" for name, price in LIST_PRICES.items())
    return SETTINGS + rows + PROFILES + "".join(prices)


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    secret = " Secret." if name in secret_names() else ""
    return (
        f"| `{variable(name)}` | {_default(name)} | {takes(name)} | {field.description}{secret} |\n"
    )


def _default(name: str) -> str:
    if name == "data":
        return "the user's data folder"
    value: Any = Settings.model_fields[name].default
    if value in (None, "", ()) or value is PydanticUndefined:
        return "none"
    return f"`{_in_words(value)}`"


def _in_words(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case timedelta() if not value % timedelta(minutes=1):
            return f"{value // timedelta(minutes=1)}m"
        case timedelta():
            return f"{value // timedelta(seconds=1)}s"
        case _:
            return str(value)


PAGES = {REFERENCE / "settings.md": settings_page}


def main(arguments: list[str]) -> int:
    stale = [path for path, page in PAGES.items() if not _is_fresh(path, page())]
    if "--check" not in arguments:
        for path in stale:
            path.write_text(PAGES[path](), encoding="utf-8")
            print(f"wrote {path}")
        return 0
    for path in stale:
        print(f"{path} is stale: run `python3 dev.py docs`.", file=sys.stderr)
    return len(stale)


def _is_fresh(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
