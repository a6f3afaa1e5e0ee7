"""How comments, literals and words of programming languages are recognized.

Every pattern reads its text once: an unclosed string or comment takes the rest of the line or of
the text, and nothing is tried again from within. Lexers of libraries need seconds for some code,
and hold up everything else meanwhile.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Language:
    id: str
    name: str
    aliases: tuple[str, ...]
    #: See `compile_pattern`.
    pattern: str
    keywords: frozenset[str]
    #: Words before the name of what they define.
    defining: frozenset[str]
    ignores_case: bool


def find_language(word: str) -> Language | None:
    return _languages().get(word.lower())


@cache
def compile_pattern(language: Language) -> re.Pattern[str]:
    """Return the groups `comment`, `literal`, `keyword` and `word`; a word has to be looked up."""
    return re.compile(language.pattern, re.MULTILINE)


_HASH, _SLASHES, _DASHES = r"#[^\n]*", r"//[^\n]*", r"--[^\n]*"
_STARS = r"/\*[\s\S]*?(?:\*/|\Z)"
_DOUBLE = r'"(?:[^"\\\n]|\\.)*+"?'
_SINGLE = r"'(?:[^'\\\n]|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^'\n]{1,12}|\\')'"
_BACKTICK = r"`(?:[^`\\]|\\[\s\S])*+`?"
_TRIPLE = r'"""[\s\S]*?(?:"""|\Z)'
_TRIPLE_SINGLE = r"'''[\s\S]*?(?:'''|\Z)"
_NUMBER = r"(?<!\w)\d[\w.]*+"
_WORD = r"[^\W\d]\w*+"
_DECORATOR = r"@[^\W\d][\w.]*+"
_QUOTES = (_DOUBLE, _SINGLE)
_C_COMMENTS = (_STARS, _SLASHES)

_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while bool true false NULL
"""
_JAVA_WORDS = """
    abstract assert boolean break byte case catch char class const continue default do double else
    enum extends final finally float for if implements import instanceof int interface long native
    new null package private protected public record return sealed short static super switch
    synchronized this throw throws transient true false try var void volatile while yield
"""
_SCRIPT_WORDS = """
    abstract any as async await boolean break case catch class const constructor continue debugger
    declare default delete do else enum export extends false finally for from function get if
    implements import in infer instanceof interface is keyof let namespace never new null number of
    private protected public readonly return satisfies set static string super switch this throw
    true try type typeof undefined unknown var void while with yield
"""
_SHELL_WORDS = """
    alias break case cd continue do done echo elif else esac eval exec exit export false fi for
    function if in local printf read readonly return select set shift source test then trap true
unset until while """


@cache
def _languages() -> dict[str, Language]:
    return {alias: language for language in _build() for alias in (language.id, *language.aliases)}


def _language(  # noqa: PLR0913 - the facts of a language
    names: str,
    words: str = "",
    *,
    comments: Iterable[str] = _C_COMMENTS,
    literals: Iterable[str] = _QUOTES,
    keywords: Iterable[str] = (),
    defining: str = "",
    ignores_case: bool = False,
    numbers: bool = True,
    has_words: bool = True,
) -> Language:
    """Build a language; `names` are its id and aliases, and after | its name."""
    ids, _, name = names.partition("|")
    first, *aliases = ids.split()
    groups = [
        ("comment", comments),
        ("keyword", keywords),
        ("literal", (*literals, _NUMBER) if numbers else literals),
        ("word", (_WORD,) if has_words else ()),
    ]
    pattern = "|".join(f"(?P<{group}>{'|'.join(parts)})" for group, parts in groups if parts)
    return Language(
        id=first,
        name=name,
        aliases=tuple(aliases),
        pattern=pattern,
        keywords=frozenset(words.lower().split() if ignores_case else words.split()),
        defining=frozenset(defining.split()),
        ignores_case=ignores_case,
    )


def _build() -> list[Language]:
    return [*_scripting(), *_compiled(), *_functional(), *_of_data(), *_of_machines()]


def _scripting() -> list[Language]:
    return [
        _language(
            "python py python3 py3|Python",
            """and as assert async await break case class continue def del elif else except False
            finally for from global if import in is lambda match None nonlocal not or pass raise
            return self True try type while with yield print len range int str float list dict set
            tuple bool super isinstance open""",
            comments=(_HASH,),
            literals=(
                rf"(?:(?i:\b[rbfu]{{1,2}}))?(?:{_TRIPLE}|{_TRIPLE_SINGLE})",
                rf"(?:(?i:\b[rbfu]{{1,2}}))?(?:{_DOUBLE}|{_SINGLE})",
            ),
            keywords=(_DECORATOR,),
            defining="class def",
        ),
        _language(
            "javascript js jsx mjs cjs node|JavaScript",
            _SCRIPT_WORDS,
            literals=(*_QUOTES, _BACKTICK),
            keywords=(_DECORATOR,),
            defining="class function",
        ),
        _language(
            "typescript ts tsx|TypeScript",
            _SCRIPT_WORDS,
            literals=(*_QUOTES, _BACKTICK),
            keywords=(_DECORATOR,),
            defining="class function interface enum type namespace",
        ),
        _language(
            "ruby rb|Ruby",
            """alias and begin break case class def defined do else elsif end ensure extend false
            for if in include loop module next nil not or private protected public puts raise redo
            require rescue retry return self super then true undef unless until when while yield""",
            comments=(r"^=begin\b[\s\S]*?(?:^=end\b|\Z)", _HASH),
            literals=(*_QUOTES, _BACKTICK, r"(?<![\w:]):[^\W\d]\w*+"),
            defining="class def module",
        ),
        _language(
            "php|PHP",
            """abstract and array as break case catch class clone const continue declare default do
            echo else elseif empty enum extends false final finally fn for foreach function global
            if implements include instanceof interface isset list match namespace new null or print
            private protected public readonly require return self static switch this throw trait
            true try unset use var while yield int string bool float void""",
            comments=(*_C_COMMENTS, r"#(?!\[)[^\n]*"),
            keywords=(r"<\?php|<\?=|\?>",),
            defining="class function interface trait enum",
        ),
        _language(
            "perl pl|Perl",
            """die do else elsif eval for foreach if last local my next no our package print push
            redo require return shift sub undef unless until use while""",
            comments=(_HASH,),
            defining="sub package",
        ),
        _language(
            "lua|Lua",
            """and break do else elseif end false for function goto if in local nil not or repeat
            return then true until while""",
            comments=(r"--\[\[[\s\S]*?(?:\]\]|\Z)", _DASHES),
            literals=(*_QUOTES, r"\[\[[\s\S]*?(?:\]\]|\Z)"),
            defining="function",
        ),
        _language(
            "r|R",
            """break else FALSE for function if in Inf library NA NaN next NULL repeat return TRUE
            while""",
            comments=(_HASH,),
        ),
        _language(
            "julia jl|Julia",
            """abstract baremodule begin break catch const continue do else elseif end export false
            finally for function global if import in let local macro module mutable nothing quote
            return struct true try using where while""",
            comments=(r"#=[\s\S]*?(?:=#|\Z)", _HASH),
            literals=(_TRIPLE, _DOUBLE, _CHARACTER),
            keywords=(_DECORATOR,),
            defining="function struct module macro",
        ),
    ]


def _compiled() -> list[Language]:
    return [
        _language(
            "c h|C",
            _C_WORDS,
            keywords=(r"^[ \t]*+#[ \t]*+\w++",),
            defining="struct enum union",
        ),
        _language(
            "cpp c++ cxx cc hpp|C++",
            f"""{_C_WORDS} catch class concept constexpr const_cast decltype delete dynamic_cast
            explicit export final friend mutable namespace new noexcept nullptr operator override
            private protected public reinterpret_cast requires static_assert static_cast template
            this throw try typename using virtual co_await co_return co_yield""",
            literals=(_DOUBLE, _CHARACTER),
            keywords=(r"^[ \t]*+#[ \t]*+\w++",),
            defining="class struct enum union namespace concept",
        ),
        _language(
            "csharp cs c#|C#",
            f"""{_JAVA_WORDS} as async await base bool checked decimal delegate event explicit
            extern fixed foreach get goto implicit in init internal is lock namespace object
            operator out override params readonly ref required sbyte set sizeof stackalloc string
            struct typeof uint ulong unchecked unsafe ushort using virtual where""",
            literals=(_TRIPLE, _DOUBLE, _CHARACTER),
            defining="class struct enum interface record namespace",
        ),
        _language(
            "java|Java",
            _JAVA_WORDS,
            literals=(_TRIPLE, *_QUOTES),
            keywords=(_DECORATOR,),
            defining="class enum interface record",
        ),
        _language(
            "kotlin kt kts|Kotlin",
            """abstract as break by catch class companion const constructor continue data do else
            enum false final finally for fun if import in init inline interface internal is lateinit
            null object open operator out override package private protected public return sealed
            super suspend this throw true try typealias val var when where while""",
            literals=(_TRIPLE, *_QUOTES),
            keywords=(_DECORATOR,),
            defining="class fun interface object",
        ),
        _language(
            "swift|Swift",
            """actor as associatedtype async await break case catch class continue default defer do
            else enum extension fallthrough false fileprivate final for func guard if import in init
            inout internal is lazy let mutating nil open operator override private protocol public
            repeat rethrows return self static struct subscript super switch throw throws true try
            typealias var weak where while""",
            literals=(_TRIPLE, _DOUBLE),
            keywords=(_DECORATOR,),
            defining="class struct enum func protocol extension actor",
        ),
        _language(
            "go golang|Go",
            """any bool break byte case chan const continue default defer else error fallthrough
            false float32 float64 for func go goto if import int int32 int64 interface iota map nil
            package range return rune select string struct switch true type uint uint32 uint64 var
            append len make new panic""",
            literals=(_DOUBLE, _CHARACTER, r"`[^`]*+`?"),
            defining="func type",
        ),
        _language(
            "rust rs|Rust",
            """as async await bool box break char const continue crate dyn else enum extern f32 f64
            false fn for i32 i64 if impl in let loop match mod move mut pub ref return self Self
            static str String struct super trait true type u8 u32 u64 unsafe use usize where while
            Some None Ok Err Option Result Vec""",
            literals=(r'\bb?r#"[\s\S]*?(?:"#|\Z)', r'"(?:[^"\\]|\\[\s\S])*+"?', _CHARACTER),
            keywords=(r"#!?\[[^\]\n]{0,200}\]?", r"\b[^\W\d]\w*+!(?!=)"),
            defining="fn struct enum trait mod type",
        ),
        _language(
            "zig|Zig",
            """and anytype bool break catch comptime const continue defer else enum errdefer error
            export extern false fn for if inline null or orelse packed pub return struct switch test
            true try undefined union unreachable usingnamespace var void volatile while""",
            comments=(_SLASHES,),
            literals=(_DOUBLE, _CHARACTER),
            keywords=(_DECORATOR,),
            defining="fn",
        ),
        _language(
            "dart|Dart",
            f"{_JAVA_WORDS} as async await dynamic export external factory get in is late mixin on "
            "operator part required rethrow set show String bool typedef with",
            literals=(_TRIPLE, _TRIPLE_SINGLE, *_QUOTES),
            keywords=(_DECORATOR,),
            defining="class enum mixin extension",
        ),
    ]


def _functional() -> list[Language]:
    return [
        _language(
            "scala|Scala",
            """abstract case catch class def do else enum extends false final finally for given if
            implicit import lazy match new null object override package private protected return
            sealed super then this throw trait true try type using val var while with yield""",
            literals=(_TRIPLE, _DOUBLE, _CHARACTER),
            keywords=(_DECORATOR,),
            defining="class def object trait enum type",
        ),
        _language(
            "haskell hs|Haskell",
            """case class data deriving do else family forall foreign hiding if import in infix
            infixl infixr instance let module newtype of qualified then type where""",
            comments=(r"\{-[\s\S]*?(?:-\}|\Z)", _DASHES),
            literals=(_DOUBLE, _CHARACTER),
            defining="class data module newtype type",
        ),
        _language(
            "elixir ex exs|Elixir",
            """after alias and case catch cond def defimpl defmacro defmodule defp defprotocol
            defstruct do else end false fn for if import in nil not or quote raise receive require
            rescue true try unless unquote use when with""",
            comments=(_HASH,),
            literals=(_TRIPLE, *_QUOTES, r"(?<![\w:]):[^\W\d]\w*+"),
            keywords=(_DECORATOR,),
            defining="def defp defmodule defmacro defprotocol",
        ),
        _language(
            "ocaml ml fsharp fs f#|OCaml",
            """and as begin class do done downto else end exception external false for fun function
            functor if in include let match module mutable new object of open rec sig struct then to
            true try type val when while with""",
            comments=(r"\(\*[\s\S]*?(?:\*\)|\Z)", _SLASHES),
            literals=(_DOUBLE, _CHARACTER),
        ),
        _language(
            "clojure clj lisp scheme elisp|Lisp",
            """def defmacro defn defun defvar do fn if lambda let loop ns nil recur require t true
            false when cond set! quote""",
            comments=(r";[^\n]*",),
            literals=(r'"(?:[^"\\]|\\[\s\S])*+"?', r"(?<![\w:]):[^\W\d][\w-]*+"),
            defining="def defn defun defmacro defvar",
        ),
    ]


def _of_data() -> list[Language]:
    return [
        _language(
            "json jsonc json5 jsonl|JSON",
            "true false null",
            keywords=(r'"(?:[^"\\\n]|\\.)*+"(?=\s{0,20}:)',),
        ),
        _language(
            "yaml yml|YAML",
            "true false null yes no on off",
            comments=(r"(?<!\S)#[^\n]*",),
            keywords=(r"""^[ \t]*+(?:- )*+[\w./-]++(?=[ \t]{0,20}:(?:\s|$))""",),
        ),
        _language(
            "toml|TOML",
            "true false inf nan",
            comments=(_HASH,),
            literals=(_TRIPLE, _TRIPLE_SINGLE, *_QUOTES),
            keywords=(r"^[ \t]*+[\w.-]++(?=[ \t]{0,20}=)", r"^\[[^\n]*"),
        ),
        _language(
            "ini cfg conf properties env dotenv editorconfig|INI",
            comments=(r"^[ \t]*+[#;][^\n]*",),
            keywords=(r"^[ \t]*+[\w.-]++(?=[ \t]{0,20}[=:])", r"^\[[^\n]*"),
            has_words=False,
        ),
        _language(
            "html xml svg xhtml vue svelte htm|HTML",
            comments=(r"<!--[\s\S]*?(?:-->|\Z)",),
            literals=(r'(?<==)"[^"]*+"?', r"(?<==)'[^']*+'?", r"&#?\w{1,32};"),
            keywords=(r"<[/!?]?[\w:.-]*+", r"[/?]?>"),
            numbers=False,
            has_words=False,
        ),
        _language(
            "css scss sass less|CSS",
            literals=(*_QUOTES, r"#[\da-fA-F]{3,8}\b"),
            keywords=(r"@[\w-]++", r"^[ \t]*+[\w-]++(?=[ \t]{0,20}:)", r"[{;][ \t]*+[\w-]++(?=:)"),
            has_words=False,
        ),
        _language(
            "sql postgresql postgres psql mysql sqlite plpgsql|SQL",
            """add all alter and as asc begin between bigint boolean by case cast check column
            commit conflict constraint create cross cte database date decimal default delete desc
            distinct do drop else end except exists explain false fetch filter for foreign from
            full function grant group having if in index inner insert int integer intersect
            interval into is join json jsonb key left like limit not null numeric of offset on or
            order outer over partition primary real references replace returning revoke right
            rollback row rows schema select set table text then timestamp to transaction trigger
            true truncate union unique update using values varchar view when where window with""",
            comments=(_STARS, _DASHES),
            literals=(r"'[^']*+'?",),
            ignores_case=True,
        ),
        _language(
            "graphql gql|GraphQL",
            """directive enum extend false fragment implements input interface mutation null on
            query scalar schema subscription true type union""",
            comments=(_HASH,),
            literals=(_TRIPLE, _DOUBLE),
            keywords=(_DECORATOR,),
            defining="enum fragment input interface mutation query type union",
        ),
        _language(
            "protobuf proto|Protocol Buffers",
            """bool bytes double enum false float import int32 int64 map message oneof option
            optional package repeated returns rpc service string syntax true uint32 uint64""",
            defining="enum message rpc service",
        ),
    ]


def _of_machines() -> list[Language]:
    return [
        _language(
            "bash sh shell zsh ksh fish|Shell",
            _SHELL_WORDS,
            comments=(r"(?<!\S)#[^\n]*",),
            literals=(r'"(?:[^"\\]|\\[\s\S])*+"?', r"'[^']*+'?"),
        ),
        _language(
            "console shell-session shellsession terminal|Terminal",
            comments=(r"^[$#>%] ",),
            literals=_QUOTES,
            numbers=False,
            has_words=False,
        ),
        _language(
            "powershell ps1 pwsh|PowerShell",
            """begin break catch class continue do else elseif end exit finally for foreach function
            if in param process return switch throw trap try until while""",
            comments=(r"<#[\s\S]*?(?:#>|\Z)", _HASH),
            literals=(r'"(?:[^"`\n]|`.)*+"?', r"'[^'\n]*+'?"),
            keywords=(r"\b[A-Z][a-z]{1,20}-[A-Z]\w{1,40}",),
            defining="class function",
            ignores_case=True,
        ),
        _language(
            "docker dockerfile containerfile|Dockerfile",
            """ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL
            STOPSIGNAL USER VOLUME WORKDIR""",
            comments=(r"^[ \t]*+#[^\n]*",),
        ),
        _language(
            "make makefile mk|Makefile",
            "define else endef endif export ifdef ifeq ifndef ifneq include override",
            comments=(_HASH,),
            keywords=(r"^[\w./%-]++(?=[ \t]{0,20}:)", r"^\.[A-Z]++"),
        ),
        _language(
            "terraform tf hcl|HCL",
            "data false for if in locals module null output provider resource true variable",
            comments=(_STARS, _SLASHES, _HASH),
            keywords=(r"^[ \t]*+\w++(?=[ \t]{0,40}=)",),
            literals=(_DOUBLE,),
        ),
        _language(
            "nginx|nginx",
            """if include location proxy_pass return rewrite root server server_name set listen
            upstream""",
            comments=(_HASH,),
        ),
        _language(
            "nix|Nix",
            "assert else false if import in inherit let null or rec then true with",
            comments=(_STARS, _HASH),
            literals=(_DOUBLE, r"''[\s\S]*?(?:''|\Z)"),
        ),
        _language(
            "diff patch|Diff",
            comments=(r"^-[^\n]*",),
            literals=(r"^\+[^\n]*",),
            keywords=(r"^(?:@@|diff |index |--- |\+\+\+ )[^\n]*",),
            numbers=False,
            has_words=False,
        ),
    ]
