"""Writes the generated pages of docs/; with `--check`, only reports stale ones."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from backburner.data_folder import SETTINGS_FILE, variable
from backburner.settings import (
    CLAUDE_ADDRESS,
    CLAUDE_MODEL,
    DEFAULT_SEATS,
    LOCAL_SEATS,
    MODELS_FILE,
    Settings,
    secret_names,
    takes,
)

REFERENCE = Path(__file__).parent / "reference"

SETTINGS = f"""\
# Settings

<!-- Written by `python3 dev.py docs` from src/backburner/settings. -->

Settings are read from these sources; the first that sets a value wins:

1. command-line options
2. environment variables; an empty variable counts as not set
3. the settings file: `{SETTINGS_FILE}` in the data folder,
   or the file that `--config` or `{variable("config")}` names
4. `{MODELS_FILE}` in the data folder, which `backburner setup` writes
5. the defaults

In the settings file, names are lower case and have no prefix: `port = 8484`.
An unknown setting or an invalid value is an error at start.

- A **duration** is a number with a unit: `500ms`, `30s`, `10m`, `2h`, `1d`.
  Without a unit it is in seconds. The maximum is `366d`.
- A **limit** is an amount of money, of tokens or both: `2.50 USD, 500000 tokens`; or `none`.
- In an environment variable, a **list** is separated by commas and a **table** is JSON.
- A **secret** can also be read from a file: set `{variable("database_url")}_FILE` to its path.
  A line break at its end is ignored.

| Variable | Default | Type | Meaning |
|---|---|---|---|
"""

PROFILES = f"""
## Profiles

A profile is a named model configuration.
`backburner setup` creates one; so does a table in the settings file:

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

or an environment variable:

```sh
export {variable("profiles")}='{{"claude": {{"engine": "claude", "key_file": "/run/secrets/key"}}}}'
```

Profiles of different sources are not merged: the first source that has the name wins.

| Key | Value |
|---|---|
| `engine` | `claude`, `openai` (any OpenAI-compatible server) or `demo` |
| `model` | name of the model; default for `claude`: `{CLAUDE_MODEL}` |
| `key`, `key_file` | API key, or the path of a file that contains only the key |
| `token`, `token_file` | for `claude`, instead of a key: token from `claude setup-token` |
| `address` | address of the API; required for `openai`, default for `claude`: {CLAUDE_ADDRESS} |
| `seats` | maximum concurrent runs; default {DEFAULT_SEATS}, in a private network {LOCAL_SEATS} |
| `images` | for `openai`: whether the model sees images; default `true` for those known to |
| `price` | price of the model, as in `{variable("prices")}` |

## Prices

A price is in dollars per million tokens: `3 in, 15 out, 0.3 cache read, 3.75 cache write`.
`in` and `out` are required; cached tokens without a price are free.

```toml
[prices]
"claude-sonnet" = "3 in, 15 out, 0.3 cache read, 3.75 cache write"
```

The key is the start of a model's name; the longest match wins.
A model without a price in `prices` or in its profile has the list price of the installed version
of [genai-prices](https://github.com/pydantic/genai-prices); it is never updated over the network.
If a list price depends on the length of the prompt, the highest is used.
Models of `openai` servers in a private network have no list price.
Without a price, only tokens are counted and limited, and task previews and the API say so.
"""


def settings_page() -> str:
    rows = "".join(_row(name) for name in Settings.model_fields)
    return SETTINGS + rows + PROFILES


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    secret = " Secret." if name in secret_names() else ""
    kind = takes(name).term or takes(name).text
    return f"| `{variable(name)}` | {_default(name)} | {kind} | {field.description}{secret} |\n"


def _default(name: str) -> str:
    if name == "data":
        return "the user's data folder"
    value: Any = Settings.model_fields[name].default
    if value in (None, "", ()) or value is PydanticUndefined:
        return "none"
    return f"`{_format(value)}`"


def _format(value: Any) -> str:
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
