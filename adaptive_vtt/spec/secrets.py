"""Keys stay out of specs, and so out of journals: a spec names the variable that holds one.

``${NAME}`` in ``model.url``, ``model.headers``, ``model.options`` and ``model.request`` is read
from the environment when the model is built (``environment``); what is journaled is the reference.
A key that is written out is refused where it can be told for one: by the name it goes under,
by its beginning, or, in headers and queries, by looking drawn at random.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ..errors import InputError

REFERENCE = re.compile(r"\$\{(\w+)\}")
BARE = re.compile(r"\$\{?(\w+)\}?")
"""In headers the braces may be left out."""

_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORD = re.compile(
    r"(api|app|access|auth|client|private|session|refresh|user)?"
    r"(key|token|secret|pass|passwd|password|passphrase|pwd)"
    r"|auth|authorization|authentication|credentials?|sig|signature|cookie|bearer|jwt|sas"
)
_POINTERS = frozenset(("env", "file", "path", "name", "var", "variable", "type"))
"""Last words of names that say where a key is, and do not hold it."""
_ISSUED = re.compile(
    r"\b(?:[spr]k-[\w-]{16,}|[spr]k_(?:live|test)_\w{10,}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]*)"
)
"""How keys begin at those who issue them."""
_SCHEME = re.compile(r"\s*(bearer|basic|token|digest|apikey)\s+\S{4,}.*", re.IGNORECASE)
_RANDOM = re.compile(r"(?=[A-Za-z0-9]*[A-Za-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{16,}")
_APART = {"url", "key", "command", "response"}
"""Fields that are looked at in ways of their own, and one that holds paths into replies."""
_PLACEHOLDER = re.compile(r"\{\w+\}")


class _Text(NamedTuple):
    """A text of a spec: its field, the name it goes under, and whether it is only for a server
    to read, as a header is."""

    field: str
    name: str
    text: str
    header: bool


def refuse_secrets(section: Mapping[str, Any], where: str) -> None:
    """Raises InputError for a key written out in a [model] section; it is not repeated.

    ``section``: as TOML gives it, before anything else is said of it. ``where``: the file.
    """
    for field, name, text, header in _texts(section):
        pattern = BARE if header else REFERENCE
        rest = _PLACEHOLDER.sub("", pattern.sub("", text)).strip()
        named = names_secret(name) and rest == text.strip() != ""
        if named or _ISSUED.search(rest) or (header and (_SCHEME.match(rest) or _random(rest))):
            raise InputError(
                f"{where}: {field}: expected '${{NAME}}', an environment variable that holds the "
                "key, got what looks like a key written out, which the journal would keep"
            )
    _check_url(_text_of(section, "url"), where)
    _check_key(_text_of(section, "key"), where)
    _check_command(section.get("command", []), where)


def names_secret(name: str) -> bool:
    """Whether what goes under this name is likely to be a key."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _POINTERS or "cache" in words:
        return False
    return any(_SECRET_WORD.fullmatch(word) for word in words)


def _random(text: str) -> bool:
    return bool(_RANDOM.search(text))


def _texts(section: Mapping[str, Any]) -> Iterator[_Text]:
    """Every text of the section, those of a query one by one."""
    for field, value in section.items():
        if field in _APART:
            continue
        yield from _within(value, f"model.{field}", field, field == "headers")
    parts = _split(_text_of(section, "url"))
    yield _Text("model.url", "", f"{parts[0]}", False)
    for name, text in parse_qsl(parts[1], keep_blank_values=True):
        named = "key" if name.lower() == "code" else name  # Azure's functions call theirs so
        yield _Text(f"model.url: {name}", named, text, True)


def _text_of(section: Mapping[str, Any], field: str) -> str:
    value = section.get(field, "")
    return value if isinstance(value, str) else ""


def _within(value: Any, field: str, name: str, header: bool) -> Iterator[_Text]:
    if isinstance(value, str):
        yield _Text(field, name, value, header)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _within(
                inner, f"{field}.{key}", str(key), header or str(key).startswith("extra_")
            )
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _within(inner, f"{field}[{place}]", name, header)


def _split(url: str) -> tuple[str, str]:
    """Path and query of a URL; of what is none, all and nothing."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    return parts.path, f"{parts.query}&{parts.fragment}"


def _check_url(url: str, where: str) -> None:
    authority = url.partition("://")[2].partition("/")[0]
    if "@" in authority:
        raise InputError(
            f"{where}: model.url: expected no user or password before the host; an Authorization "
            "header can hold '${NAME}'"
        )


def _check_key(key: str, where: str) -> None:
    if _ISSUED.search(key) or _random(key):
        raise InputError(
            f"{where}: model.key: expected the name of an environment variable, got what looks "
            "like a key, which the journal would keep"
        )


def _check_command(command: str | list[str], where: str) -> None:
    """A program reads its keys from the environment: what it is started with, all can see."""
    try:
        words = shlex.split(command) if isinstance(command, str) else [*map(str, command)]
    except ValueError:
        return  # said when it is to be started
    for word, following in pairwise([*words, "-"]):
        name, joined, value = word.partition("=")
        given = value if joined else "" if following.startswith("-") else following
        flag = name.startswith("-") or bool(joined)
        if _ISSUED.search(word) or (flag and given and names_secret(name)):
            raise InputError(
                f"{where}: model.command: expected a program that reads its key from the "
                f"environment, got what looks like a key in its arguments"
            )
