"""Keys stay out of specs, and so out of journals: a spec names the variable that holds one.

``${NAME}`` in ``model.url``, ``model.headers``, ``model.options``, ``model.provider`` and
``model.request`` is read from the environment when the model is built; what is journaled is the
reference.

Headers and the parameters of a query hold a reference, unless they go under a name that is known
to hold no key (``key_signs.PLAIN_HEADERS``, ``PLAIN_PARAMETERS``). Anything else may be written
out, but for what can be told for a key: by its name, by its beginning, by looking random.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from ..errors import InputError
from ..models.network.keys import (
    Key,
    Sent,
    from_environment,
    is_issued,
    is_plain,
    is_random,
    looks_like_key,
    scrubbed,
    texts,
    texts_of_options,
    texts_of_query,
)
from ..utils.files import Table

REFERENCE = re.compile(r"\$\{(\w+)\}")
BARE = re.compile(r"\$\{?(\w+)\}?")
"""In headers the braces may be left out."""
_APART = {"url", "headers", "options", "key", "response"}
"""Fields that are looked at in ways of their own, and one that holds paths into replies."""
_PLACEHOLDER = re.compile(r"\{\w+\}")


def refuse_secrets(section: Mapping[str, Any], where: str) -> None:
    """Raises InputError for a key written out in a [model] section; it is not repeated.

    ``where``: the file, for the message.
    """
    for sent in _texts(section):
        _check_text(sent, where)
    _check_url(_text_of(section, "url"), where)
    _check_key(_text_of(section, "key"), where)


def _text_of(section: Mapping[str, Any], field: str) -> str:
    value = section.get(field)
    return value if isinstance(value, str) else ""


def _table_of(section: Mapping[str, Any], field: str) -> Table:
    value = section.get(field)
    return value if isinstance(value, dict) else {}


def _texts(section: Mapping[str, Any]) -> Iterator[Sent]:
    """Every text of the section, those of a query one by one."""
    for field, value in {n: v for n, v in section.items() if n not in _APART}.items():
        yield from texts(value, f"model.{field}", field, "payload")
    yield from texts(_table_of(section, "headers"), "model.headers", "", "header")
    yield from texts_of_options(_table_of(section, "options"), "model.options")
    url = _text_of(section, "url")
    yield Sent("model.url", "", url.partition("?")[0], "payload")
    yield from texts_of_query(url, "model.url")


def _check_text(sent: Sent, where: str) -> None:
    pattern = BARE if sent.place == "header" else REFERENCE
    rest = _PLACEHOLDER.sub("", pattern.sub("", sent.text)).strip()
    named = not is_plain(sent) and rest == sent.text.strip() != ""
    if looks_like_key(sent._replace(text=rest)) or (named and sent.place in ("payload", "body")):
        raise InputError(
            f"{where}: {sent.field}: expected '${{NAME}}', an environment variable that holds the "
            "key, got what looks like a key written out, which the journal would keep"
        )
    if named:
        what = "header" if sent.place == "header" else "parameter of a query"
        raise InputError(
            f"{where}: {sent.field}: expected '${{NAME}}', an environment variable that holds the "
            f"value, got a {what} written out, which may be a key and the journal would keep"
        )


def _check_url(url: str, where: str) -> None:
    authority = url.partition("://")[2].partition("/")[0]
    if "@" in authority:
        raise InputError(
            f"{where}: model.url: expected no user or password before the host; an Authorization "
            "header can hold '${NAME}'"
        )
    if "#" in url:
        raise InputError(
            f"{where}: model.url: expected no '#' and nothing after it, which no server is sent "
            "and the journal would keep; a key can stand in the environment and in the query as "
            "'?key=${NAME}'"
        )


def _check_key(key: str, where: str) -> None:
    if is_issued(key) or is_random(key):
        raise InputError(
            f"{where}: model.key: expected the name of an environment variable, got what looks "
            "like a key, which the journal would keep"
        )


_REFERRING = ("url", "options", "provider", "request")
"""Fields whose texts may refer to the environment, and headers, which the endpoint fills in."""


@contextmanager
def filled(given: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[Key]]]:
    """A section's fields with keys filled in, and these, while a model is built of them.

    An InputError that is raised within is raised again without the keys.
    """
    keys: list[Key] = []
    found = {
        field: _filled(value, f"model.{field}", REFERENCE, keys) if field in _REFERRING else value
        for field, value in given.items()
    }
    try:
        yield found, keys
    except InputError as error:
        raise InputError(scrubbed(str(error), keys)) from None


def _filled(value: Any, where: str, reference: re.Pattern[str], keys: list[Key]) -> Any:
    if isinstance(value, dict):
        return {
            name: _filled(
                inner, f"{where}.{name}", BARE if name == "extra_headers" else reference, keys
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_filled(inner, where, reference, keys) for inner in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> str:
        keys.append(from_environment(match[1], where))
        key = keys[-1].reveal()
        return quote(key, safe="") if where == "model.url" else key

    return reference.sub(found, value)
