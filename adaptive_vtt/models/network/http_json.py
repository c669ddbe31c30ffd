"""Any HTTP service with JSON requests and replies, whose form the user describes in SPEC.toml."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from ...errors import InputError, check_known
from ...types import Ask, Prompt, Unanswered, Value
from ...utils.options import Group, Option
from ..reply_frames import NO_ANSWER
from .attempts import QUOTED, Reply, reading
from .http import Encoding, HttpEndpoint, parsed
from .keys import QUERY, Key, scrubbed, texts, written_out
from .prices import Usage
from .shapes import probability

REQUEST = (
    "the JSON to post; {image_base64}, {concepts}, {concept}, {questions}, {question}, {options} "
    "and {words} are filled in, and ${NAME} from the environment"
)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

PLACEHOLDERS = ("image_base64", "concepts", "concept", "questions", "question", "options", "words")


class HttpJson(HttpEndpoint):
    """A model that is asked by POST requests of any JSON, and whose reply is JSON.

    A value in the reply is P(yes), true, false, null (no answer) or, if questions are in words,
    text; a reply without any such value is malformed.

    Args:
        url: Address of the POST.
        request: Any JSON. A text that is a placeholder is replaced by its value, and placeholders
            within longer texts by text: {image_base64}, {concepts}, {concept}, {questions},
            {question}, {options}, {words} (text about the image, if any). With {concept},
            {question} or {options} a call asks about one concept, else about all of an image.
        response: Path in the reply, such as "outputs.0.scores", to one value per concept, as a list
            or an object by concept, or to the value of a single concept. Or an object: concept ->
            path.
        encoding: Format of images. Default None: PNG.
        input_tokens: Path to the count of tokens sent. Default None: they are not counted.
        output_tokens: Path to the count of tokens answered. Default None: they are not counted.
        most_input_tokens: The most tokens that a call sends.
        most_output_tokens: The most tokens that a call answers.
        keys: Further secrets, which are removed from all texts that are shown or stored.
        **options: Options of `HttpEndpoint`.

    Raises:
        InputError: A placeholder is unknown, or token counts have no bounds.
    """

    may_judge = True

    def __init__(
        self,
        url: Annotated[str, Option(f"where to post; {QUERY}")],
        *,
        request: Annotated[Mapping[str, Any], Option(REQUEST)],
        response: Annotated[
            str | Mapping[str, str],
            Option("path to the answers (outputs.0.scores), or concept -> path"),
        ],
        encoding: Annotated[Encoding | None, Group(Encoding)] = None,
        input_tokens: Annotated[str | None, Option("where the reply counts tokens sent")] = None,
        output_tokens: Annotated[str | None, Option("where it counts those answered")] = None,
        most_input_tokens: Annotated[int, Option("a call sends no more", ge=0)] = 0,
        most_output_tokens: Annotated[int, Option("a call answers no more", ge=0)] = 0,
        keys: Sequence[Key] = (),
        **options: Any,
    ) -> None:
        bound = Usage(most_input_tokens, most_output_tokens)
        names = set(_PLACEHOLDER.findall(json.dumps(request)))
        for name in sorted(names):
            check_known("placeholder", name, PLACEHOLDERS, "model.request")
        answers = "one" if names & {"concept", "question", "options"} else "all"
        keys = [*keys, *written_out(texts(request, "", "", "payload"))]
        # the name is shown: it is the last part of the path, without query and keys
        path = url.partition("?")[0].partition("#")[0]
        options.setdefault("name", scrubbed(path.rstrip("/").rpartition("/")[2], keys))
        super().__init__(url, answers=answers, bound=bound, keys=keys, **options)
        self._request, self.takes_words = request, "words" in names
        self._response = response
        self._encoding = encoding or Encoding()
        self._usage_paths = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        if (input_tokens or output_tokens) is not None and not bound.total:
            raise InputError(
                "model: token counts need their bounds, most_input_tokens and most_output_tokens"
            )

    def prepare(self, prompt: Prompt) -> bytes:
        ask = prompt.asks[0] if prompt.asks else Ask(prompt.concepts[0])
        values = {
            "image_base64": self._encoding.base64_of(prompt),
            "concepts": list(prompt.concepts),
            "concept": prompt.concepts[0],
            "questions": [ask.text for ask in prompt.asks],
            "question": ask.text,
            "options": list(ask.options),
            "words": prompt.words,
        }
        return json.dumps(_filled(self._request, values)).encode()

    async def send(self, request: bytes, prompt: Prompt) -> Reply:
        raw = await self.exchange(content=request, content_type="application/json")
        with reading(raw=raw):
            body = parsed(raw)
            usage = self._used(body)
            with reading(usage):
                try:
                    reply = Reply(self._values(body, prompt), usage)
                except LookupError as error:
                    detail = f"the reply has nothing at {error.args[0]!r}, which begins "
                    raise ValueError(f"{detail}{_start(body)}") from None
                self._check(reply, prompt)
                return reply

    def _used(self, body: Any) -> Usage | None:
        """Return the tokens that a reply counts at the paths, or more if the objects there do."""
        counts, hints = {}, []
        for name, path in self._usage_paths.items():
            if path is None:
                continue
            with suppress(LookupError):  # this reply has no count there
                counts[name] = at(body, path)
            with suppress(LookupError):
                around = at(body, path.rpartition(".")[0])
                hints.append(around if "." in path else _scalars(around))
        return self.counted(counts, hints=hints)

    def _values(self, body: Any, prompt: Prompt) -> tuple[Value, ...]:
        """Return one value per concept.

        Raises:
            LookupError: The reply has nothing at a path.
            ValueError: No value is an answer, and none is null.
        """
        if isinstance(self._response, Mapping):
            for concept in prompt.concepts:
                check_known("concept", concept, self._response, "model.response")
            raw = [at(body, self._response[concept]) for concept in prompt.concepts]
            where = ", ".join(self._response.values())
        else:
            where = self._response
            raw = _aligned(at(body, where), prompt, where)
        values = [_value(value, words=bool(prompt.asks)) for value in raw]
        if all(isinstance(value, Unanswered) for value in values) and None not in raw:
            kind = "words" if prompt.asks else "P(yes)"
            raise ValueError(f"expected {kind} at {where!r}, got {_start(raw)}")
        return tuple(values)


def at(body: Any, path: str) -> Any:
    """Return the value at a dotted path in JSON; raise LookupError, with the path, without one."""
    for part in filter(None, path.split(".")):
        try:
            body = body[int(part)] if isinstance(body, list) else body[part]
        except (LookupError, TypeError, ValueError):
            raise LookupError(path) from None
    return body


def _scalars(body: Any) -> Any:
    """Return the fields of an object that are no lists or objects."""
    fields = body.items() if isinstance(body, Mapping) else ()
    return {name: value for name, value in fields if not isinstance(value, Mapping | list)}


def _aligned(raw: Any, prompt: Prompt, path: str) -> list[Any]:
    """Return one value per concept, in their order, from an object, a list or a single value.

    Raises:
        LookupError: A concept has no value.
    """
    count = len(prompt.concepts)
    if isinstance(raw, dict):
        for concept in prompt.concepts:
            if concept not in raw:
                raise LookupError(f"{path}.{concept}".lstrip("."))
        return [raw[concept] for concept in prompt.concepts]
    values = raw if isinstance(raw, list) else [raw]
    if len(values) != count:
        raise LookupError(f"{path} for each of {count} concepts ({len(values)} values)")
    return values


def _value(raw: Any, *, words: bool) -> Value:
    """Return a value of the reply as text if ``words``, else as P(yes)."""
    if words and isinstance(raw, bool):
        return "Yes" if raw else "No"
    if isinstance(raw, str):
        return raw if words else probability(raw)
    if isinstance(raw, int | float):
        return str(raw) if words else float(raw)
    return Unanswered(NO_ANSWER)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return the JSON of a request with its placeholders replaced, at any depth."""
    if isinstance(template, Mapping):
        return {key: _filled(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [_filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return values.get(whole.group(1))

    def text(match: re.Match[str]) -> str:
        value = values.get(match.group(1)) or ""
        return value if isinstance(value, str) else ", ".join(value)

    return _PLACEHOLDER.sub(text, template)


def _start(body: Any) -> str:
    return json.dumps(body)[:QUOTED]
