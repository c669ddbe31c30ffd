"""Any HTTP service that takes JSON and gives JSON: what goes where is written in the spec."""

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
    """POSTs ``request`` to ``url`` and finds the answer at ``response``.

    A value at ``response`` is P(yes), true, false, null (no answer) or, if questions are in words,
    words; a reply with nothing of the kind there is malformed.

    Args:
        url: Where to post.
        request: Any JSON. A text that is a placeholder becomes its value, and placeholders within
            longer texts become words: {image_base64}, {concepts}, {concept}, {questions},
            {question}, {options}, {words} (text about the image, if any). With {concept},
            {question} or {options} a call asks one concept, else all of an image.
        response: A path such as "outputs.0.scores", to one value per concept, as a list or an
            object by concept, or to the value of a single concept. Or an object: concept -> path.
        encoding: How images are sent.
        input_tokens: Path to the count of tokens sent, as ``output_tokens`` to those answered.
        most_input_tokens: The most tokens that a call sends, as ``most_output_tokens`` answers.
        keys: Taken out of whatever is shown or kept.
        options: Those of `HttpEndpoint`.

    Raises:
        InputError: A placeholder or path is none.
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
        # without the query, and without keys: names are journaled and shown
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
        """Return the tokens that a reply counts at the paths; objects there may count more."""
        counts, hints = {}, []
        for name, path in self._usage_paths.items():
            if path is None:
                continue
            with suppress(LookupError):  # a reply that counts nothing there
                counts[name] = at(body, path)
            with suppress(LookupError):
                around = at(body, path.rpartition(".")[0])
                hints.append(around if "." in path else _numbers(around))
        return self.counted(counts, hints=hints)

    def _values(self, body: Any, prompt: Prompt) -> tuple[Value, ...]:
        if isinstance(self._response, Mapping):
            for concept in prompt.concepts:
                check_known("concept", concept, self._response, "model.response")
            stated = [at(body, self._response[concept]) for concept in prompt.concepts]
            where = ", ".join(self._response.values())
        else:
            where = self._response
            stated = _aligned(at(body, where), prompt, where)
        values = [_value(one, words=bool(prompt.asks)) for one in stated]
        silent = [isinstance(value, Unanswered) for value in values]
        if all(silent) and None not in stated:  # null says that there is no answer
            kind = "words" if prompt.asks else "P(yes)"
            raise ValueError(f"expected {kind} at {where!r}, got {_start(stated)}")
        return tuple(values)


def at(body: Any, path: str) -> Any:
    """Return what a dotted path leads to; raise LookupError (with the path) for nothing."""
    for part in filter(None, path.split(".")):
        try:
            body = body[int(part)] if isinstance(body, list) else body[part]
        except (LookupError, TypeError, ValueError):
            raise LookupError(path) from None
    return body


def _numbers(body: Any) -> Any:
    """Return the fields of an object that hold no lists or objects."""
    fields = body.items() if isinstance(body, Mapping) else ()
    return {name: value for name, value in fields if not isinstance(value, Mapping | list)}


def _aligned(stated: Any, prompt: Prompt, path: str) -> list[Any]:
    """Return one value per concept, in their order."""
    count = len(prompt.concepts)
    if isinstance(stated, dict):
        for concept in prompt.concepts:
            if concept not in stated:
                raise LookupError(f"{path}.{concept}".lstrip("."))
        return [stated[concept] for concept in prompt.concepts]
    values = stated if isinstance(stated, list) else [stated]
    if len(values) != count:
        raise LookupError(f"{path} for each of {count} concepts ({len(values)} values)")
    return values


def _value(stated: Any, *, words: bool) -> Value:
    if words and isinstance(stated, bool):
        return "Yes" if stated else "No"
    if isinstance(stated, str):
        return stated if words else probability(stated)
    if isinstance(stated, int | float):
        return str(stated) if words else float(stated)
    return Unanswered(NO_ANSWER)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {key: _filled(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [_filled(part, values) for part in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return values.get(whole.group(1))

    def words(match: re.Match[str]) -> str:
        value = values.get(match.group(1)) or ""
        return value if isinstance(value, str) else ", ".join(value)

    return _PLACEHOLDER.sub(words, template)


def _start(body: Any) -> str:
    return json.dumps(body)[:QUOTED]
