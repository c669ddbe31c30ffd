"""Any HTTP service that takes JSON and gives JSON: what goes where is written in the spec."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from ...errors import InputError, unknown
from ...types import Prompt, Unanswered, Value
from ...utils.options import Group, Option
from .attempts import MALFORMED, QUOTED, Reply, Trouble, reading
from .http import Encoding, HttpEndpoint
from .keys import QUERY, Key, texts, written_out
from .prices import Usage
from .shapes import probability

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

_PLACES: dict[str, Callable[[Prompt], Any]] = {
    "concepts": lambda prompt: list(prompt.concepts),
    "concept": lambda prompt: prompt.concepts[0],
    "questions": lambda prompt: [ask.text for ask in prompt.asks],
    "question": lambda prompt: prompt.asks[0].text if prompt.asks else prompt.concepts[0],
    "options": lambda prompt: list(prompt.asks[0].options) if prompt.asks else [],
    "words": lambda prompt: prompt.words,
}
"""What may stand in a request, beside the image."""
_IMAGE = "image_base64"


class HttpJson(HttpEndpoint):
    """POSTs ``request`` to ``url`` and finds the answer at ``response``.

    ``request``: any JSON, where a text that is a placeholder becomes what it names, and
    placeholders within longer texts become words: {image_base64}, {concepts}, {concept},
    {questions}, {question}, {options}, {words} (what to say of the image beside the questions, or
    nothing); with {concept}, {question} or {options} a call asks one concept, else all of an
    image. ``response``: a path such as "outputs.0.scores", to one value per concept as a list, an
    object by concept, or, of a single concept, a value; or an object: concept -> path. A value is
    P(yes), true, false, null (no answer) or, where questions are in words, words; a reply with
    nothing of the kind there is malformed.
    Raises InputError for placeholders and paths that are none.
    """

    def __init__(
        self,
        url: Annotated[str, Option(f"where to post; {QUERY}")],
        *,
        request: Annotated[
            Mapping[str, Any],
            Option(
                "the JSON to post; {image}, {concepts}, {concept}, {question}, {options}, {words} "
                "are filled in, and ${NAME} from the environment"
            ),
        ],
        response: Annotated[
            str | Mapping[str, str],
            Option("where the answers stand, e.g. outputs.0.scores, or one per concept"),
        ],
        encoding: Annotated[Encoding | None, Group(Encoding)] = None,
        input_tokens: Annotated[str | None, Option("where the reply counts tokens sent")] = None,
        output_tokens: Annotated[str | None, Option("where it counts those answered")] = None,
        most_input_tokens: Annotated[int, Option("a call sends no more", ge=0)] = 0,
        most_output_tokens: Annotated[int, Option("a call answers no more", ge=0)] = 0,
        keys: Sequence[Key] = (),
        **options: Any,
    ) -> None:
        options.setdefault("name", name_of_url(url))
        bound = Usage(most_input_tokens, most_output_tokens)
        names = _placeholders(request)
        answers = "one" if names & {"concept", "question", "options"} else "all"
        found = written_out(texts(request, "", "", "payload"))
        super().__init__(url, answers=answers, bound=bound, keys=[*keys, *found], **options)
        self._request, self.takes_words = request, "words" in names
        self._response = response
        self._encoding = encoding or Encoding()
        self._usage_paths = (input_tokens, output_tokens)
        if any(paths is not None for paths in self._usage_paths) and not bound.total:
            raise InputError(
                "model: token counts need their bounds, most_input_tokens and most_output_tokens"
            )

    def prepare(self, prompt: Prompt) -> bytes:
        values = {name: make(prompt) for name, make in _PLACES.items()}
        if prompt.image is not None:
            values[_IMAGE] = self._encoding.base64_of(prompt)
        return json.dumps(_filled(self._request, values)).encode()

    async def send(self, request: bytes, prompt: Prompt) -> Reply:
        body = await self.exchange(content=request, content_type="application/json")
        usage = self._used(body)
        with reading(usage):
            try:
                return Reply(self._values(body, prompt), usage)
            except LookupError as error:
                detail = f"the reply has nothing at {error.args[0]!r}, which begins {_start(body)}"
                raise Trouble(MALFORMED, detail, billed=True, usage=usage) from None

    def _used(self, body: Any) -> Usage | None:
        return self.counted(*(_count(body, path) for path in self._usage_paths))

    def _values(self, body: Any, prompt: Prompt) -> tuple[Value, ...]:
        if isinstance(self._response, Mapping):
            missing = [c for c in prompt.concepts if c not in self._response]
            if missing:
                raise unknown("concept", missing[0], self._response, "model.response")
            found = [at(body, self._response[c]) for c in prompt.concepts]
        else:
            found = _aligned(at(body, self._response), prompt, self._response)
        if not any(_is_value(one, words=bool(prompt.asks)) for one in found):
            kind = "words" if prompt.asks else "P(yes)"
            raise ValueError(f"expected {kind} at {self._path!r}, got {_start(found)}")
        return tuple(_value(one, words=bool(prompt.asks)) for one in found)

    @property
    def _path(self) -> str:
        paths = self._response
        return paths if isinstance(paths, str) else ", ".join(paths.values())


def _count(body: Any, path: str | None) -> Any:
    """What stands where the server should count tokens; None where nothing does."""
    try:
        return None if path is None else at(body, path)
    except LookupError:
        return None


def name_of_url(url: str) -> str:
    """What a model is called where only its address is known: the last part of the path.

    No query: names are journaled and shown, and queries hold keys.
    """
    return url.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]


def at(body: Any, path: str) -> Any:
    """What a dotted path leads to; raises LookupError (with the path) where nothing is."""
    for part in filter(None, path.split(".")):
        try:
            body = body[int(part)] if isinstance(body, list) else body[part]
        except (LookupError, TypeError, ValueError):
            raise LookupError(path) from None
    return body


def _aligned(found: Any, prompt: Prompt, path: str) -> list[Any]:
    count = len(prompt.concepts)
    if isinstance(found, dict):
        missing = [c for c in prompt.concepts if c not in found]
        if missing:
            raise LookupError(f"{path}.{missing[0]}".lstrip("."))
        return [found[c] for c in prompt.concepts]
    if not isinstance(found, list):
        found = [found]
    if len(found) != count:
        raise LookupError(f"{path} for each of {count} concepts ({len(found)} values)")
    return list(found)


def _is_value(found: Any, *, words: bool) -> bool:
    """Whether this says something: null says that there is no answer."""
    if isinstance(found, str) and not words:
        return not isinstance(probability(found), Unanswered)
    return found is None or isinstance(found, str | int | float)


def _value(found: Any, *, words: bool) -> Value:
    if found is None:
        return Unanswered("no answer")
    if isinstance(found, bool):
        return ("Yes" if found else "No") if words else float(found)
    if not words and isinstance(found, int | float):
        return float(found)
    if words and isinstance(found, str | int | float):
        return str(found)
    return probability(found) if isinstance(found, str) else Unanswered("no answer: no number")


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {key: _filled(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [_filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole:
        return values.get(whole.group(1))
    return _PLACEHOLDER.sub(lambda match: _words(values.get(match.group(1))), template)


def _words(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else ", ".join(value)


def _placeholders(template: Any) -> set[str]:
    """The placeholders of a template; raises InputError for one that names nothing."""
    known = (_IMAGE, *_PLACES)
    names = set(_PLACEHOLDER.findall(json.dumps(template)))
    for name in sorted(names.difference(known)):
        raise unknown("placeholder", name, known, "model.request")
    return names


def _start(body: Any) -> str:
    return json.dumps(body)[:QUOTED]
