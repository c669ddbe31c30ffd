"""Keys stay out of specs, and so out of journals: a spec names the variable that holds a key.

``${NAME}`` in ``model.url``, ``model.headers``, ``model.options``, ``model.provider`` and
``model.request`` is read from the environment when the model is built; the journal keeps the
reference.

Headers and parameters of a query must be references, unless their name is known to hold no key
(``key_signs.PLAIN_HEADERS``, ``PLAIN_PARAMETERS``). Other values may be written out, unless they
look like a key: by name, by beginning, or by looking random.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from ..errors import InputError, unexpected
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

REFERENCE = re.compile(r"\$\{(\w+)\}")
BARE = re.compile(r"\$\{?(\w+)\}?")
"""In headers the braces may be left out."""
_APART = {"url", "headers", "options", "key", "response"}
"""Fields that are checked on their own, and ``response``, which holds paths into replies."""
_TABLES = ("headers", "options")
_REFERRING = ("url", "options", "provider", "request")
"""Fields whose texts may refer to the environment, and headers, which the endpoint fills in."""
_PLACEHOLDER = re.compile(r"\{\w+\}")


def refuse_secrets(section: Mapping[str, Any], where: str) -> None:
    """Raise InputError for a key written out in a [model] section; it is not repeated.

    ``where``: the file, for the message.
    """
    url, key = (v if isinstance(v := section.get(n), str) else "" for n in ("url", "key"))
    for sent in _texts(section, url):
        pattern = BARE if sent.place == "header" else REFERENCE
        remaining = _PLACEHOLDER.sub("", pattern.sub("", sent.text)).strip()
        named = not is_plain(sent) and remaining == sent.text.strip() != ""
        looks = looks_like_key(sent._replace(text=remaining))
        if looks or named:
            got = "what looks like a key written out, which the journal would keep"
            if not looks and sent.place not in ("payload", "body"):
                what = "header" if sent.place == "header" else "parameter of a query"
                got = f"a {what} written out, which may be a key and the journal would keep"
            expected = "'${NAME}', an environment variable that holds it"
            raise unexpected(f"{where}: {sent.field}", expected, got)
    if "@" in url.partition("://")[2].partition("/")[0]:
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
    if is_issued(key) or is_random(key):
        got = "what looks like a key, which the journal would keep"
        raise unexpected(f"{where}: model.key", "the name of an environment variable", got)


def _texts(section: Mapping[str, Any], url: str) -> Iterator[Sent]:
    """Yield every text of the section, those of a query one by one."""
    headers, options = (v if isinstance(v := section.get(n), dict) else {} for n in _TABLES)
    for field, value in {n: v for n, v in section.items() if n not in _APART}.items():
        yield from texts(value, f"model.{field}", field, "payload")
    yield from texts(headers, "model.headers", "", "header")
    yield from texts_of_options(options, "model.options")
    yield Sent("model.url", "", url.partition("?")[0], "payload")
    yield from texts_of_query(url, "model.url")


@contextmanager
def filled(given: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[Key]]]:
    """Yield a section's fields with keys filled in, and the keys, while its model is built.

    An InputError from within is raised again without the keys.
    """
    keys: list[Key] = []
    values = {
        field: _filled(value, f"model.{field}", REFERENCE, keys) if field in _REFERRING else value
        for field, value in given.items()
    }
    try:
        yield values, keys
    except InputError as error:
        raise InputError(scrubbed(str(error), keys)) from None


def _filled(value: Any, where: str, reference: re.Pattern[str], keys: list[Key]) -> Any:
    if isinstance(value, dict):
        patterns = {name: BARE if name == "extra_headers" else reference for name in value}
        return {n: _filled(v, f"{where}.{n}", patterns[n], keys) for n, v in value.items()}
    if isinstance(value, list):
        return [_filled(inner, where, reference, keys) for inner in value]
    if not isinstance(value, str):
        return value

    def from_match(match: re.Match[str]) -> str:
        keys.append(from_environment(match[1], where))
        key = keys[-1].reveal()
        return quote(key, safe="") if where == "model.url" else key

    return reference.sub(from_match, value)
