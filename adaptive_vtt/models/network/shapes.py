"""Replies of chat models: words, numbers as text, text in parts, errors within.

Each shape has a reading, or its own reason for which the question stays unanswered.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...types import JsonObject, Prompt, Unanswered, Value
from ..reply_frames import MORE, NO_ANSWER, REFUSED, without_thinking
from ..yes_no import declines, p_yes, yes_or_no
from .attempts import Reply
from .elicitation import ALTERNATIVES, WORDS
from .http import fields_of
from .prompt_templates import Template

EMPTY = Unanswered("an empty reply")
ONLY_REASONING = Unanswered("only reasoning came, and no answer after it")
TOOL = Unanswered("the model called a tool instead of answering")
FILTERED = Unanswered(f"{REFUSED}the server's content filter")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_NUMBER = re.compile(r"\s*(\d+(?:[.,]\d+)?|[.,]\d+)\s*(%|per ?cent)?\s*")
_OBJECT = re.compile(r"\{[^{}]*\}")
_STATUSES = (
    (r"insufficient_quota|billing|credit", 402),
    (r"api[_ ]key|authenti|unauthori[sz]ed", 401),
    (r"permission|forbidden", 403),
    (r"rate[_ ]?limit|too[_ ]many|quota|resource[_ ]exhausted", 429),
    (r"overload|busy|unavailable|capacity", 503),
    (r"time[_ ]?d?[_ ]?out", 408),
    (r"invalid[_ ]request|bad[_ ]request|unsupported", 400),
)
"""Statuses of errors that come with none, by their words."""


def received(
    choice: Mapping[str, Any], prompt: Prompt, mode: str, template: Template, longest: int
) -> Reply:
    """Read a choice of a chat completion, without its tokens.

    Any exception means that it is malformed.

    Args:
        choice: The choice in OpenAI's protocol: message, finish_reason, logprobs.
        prompt: The prompt.
        mode: The form in which P(yes) was asked for.
        template: The words that the prompt was put in.
        longest: Tokens of the longest reply that was asked for.
    """
    message, ended = choice["message"], choice.get("finish_reason")
    if (refusal := refusal_in(message)) is not None:
        return Reply(Unanswered(f"{REFUSED}{refusal}"), None, refusal, wanted=None)
    text, cut = text_of(message.get("content")), longest if ended == "length" else None
    words = words_of_message(message, text, cut=cut is not None)
    if ended == "content_filter":
        return Reply(FILTERED, None, words, wanted=None)
    if cut is None and not text.strip():
        return Reply(unsaid(message), None, words, wanted=True if mode == WORDS else None)
    values, wanted = spoken(text, prompt, template, cut=cut), False
    if mode == WORDS:
        return Reply(values, None, words)
    if mode in ALTERNATIVES:
        tokens = (choice.get("logprobs") or {}).get("content") or ()
        wanted = any(token.get("top_logprobs") for token in tokens)
        value = p_yes(tokens, prompt.concepts[0])
        begun = isinstance(values, tuple) and not isinstance(values[0], Unanswered)
        values = values if value is None or not (cut is None or begun) else (value,)
    elif (stated := stated_in(text, names_in(prompt))) is not None:
        values, wanted = stated, True
    # a reply that is cut, empty or a refusal shows nothing about what the server can do
    silent = cut is not None or not text.strip() or declines(text)
    return Reply(values, None, words, wanted=wanted or (None if silent else False))


def cut_off(longest: int) -> Unanswered:
    """Return why a reply that reached the longest length is none."""
    return Unanswered(f"cut off at max_tokens = {longest}; raise it")


def text_of(content: object) -> str:
    """Return the text of a message's content, words or parts, without parts that think, call or
    show something. Raise ValueError for anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, bool | int | float):
        return json.dumps(content)
    if not isinstance(content, Sequence):
        raise ValueError("its content is neither text nor a list of parts")
    parts = [{"text": part} if isinstance(part, str) else fields_of(part) for part in content]
    texts = (part.get("text") for part in parts if part.get("type", "text").endswith("text"))
    return "".join(text for text in texts if isinstance(text, str))


def unsaid(message: Mapping[str, Any]) -> Unanswered:
    """Return why a message without any text is no answer."""
    if message.get("tool_calls") or message.get("function_call"):
        return TOOL
    parts = message.get("content")
    thought = isinstance(parts, list) and bool(parts)
    return ONLY_REASONING if thought or any(map(message.get, _REASONING)) else EMPTY


def words_of_message(message: Mapping[str, Any], text: str, *, cut: bool) -> str:
    """Return the words of a reply to keep: its ``text``, or, where it has none, its reasoning."""
    if text.strip():
        return text + MORE * cut
    thought = next((t for t in map(message.get, _REASONING) if isinstance(t, str) and t), "")
    return thought and thought + MORE


def refusal_in(message: Mapping[str, Any]) -> str | None:
    """Return the words of a refusal that stands next to the content, or in a part of it."""
    parts = message.get("content")
    parts = parts if isinstance(parts, list) else []
    for refusal in (message.get("refusal"), *(fields_of(p).get("refusal") for p in parts)):
        if refusal:
            return refusal if isinstance(refusal, str) else "the model declined"
    return None


def spoken(
    text: str, prompt: Prompt, template: Template, *, cut: int | None
) -> tuple[Value, ...] | Unanswered:
    """Read the values in a reply in words.

    Args:
        text: The reply.
        prompt: The prompt.
        template: The words that the prompt was put in.
        cut: The length at which the reply broke off, or None. Only an answer at the beginning of
            such a reply counts, as reasons may precede a later one.
    """
    if cut is None:
        return words_in(text, prompt, template)
    if not text.strip():
        return cut_off(cut)
    if in_words(prompt):
        return words_in(text, prompt, template)
    answer = without_thinking(text)
    begins = "" if isinstance(answer, Unanswered) else answer
    if len(prompt.concepts) == 1:
        begins = "".join(begins.split()[:1])
    values = words_in(begins, prompt, template)
    return tuple(cut_off(cut) if isinstance(value, Unanswered) else value for value in values)


def stated_in(text: str, names: Sequence[str]) -> tuple[Value, ...] | None:
    """Return the probabilities under ``names`` in the JSON of a reply, or the last JSON in its
    words; None if there is none. Numbers may be text or per cent."""
    for part in (text, *_OBJECT.findall(text)[-1:]):
        try:
            stated = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(stated, Mapping) and not stated.keys().isdisjoint(names):
            return tuple(probability(stated.get(name)) for name in names)
    return None


def probability(value: object) -> Value:
    """Return a number from 0 to 1 as a server may write it, or why it is none."""
    if value is None:
        return Unanswered(NO_ANSWER)
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value)
        if number is None:
            word = {"yes": 1.0, "no": 0.0}.get(value.strip(" .").lower())
            return Unanswered(NO_ANSWER) if word is None else word
        value = float(number[1].replace(",", ".")) / (100 if number[2] else 1)
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    shown = json.dumps(value)[:40] if isinstance(value, int | float) else "something else"
    return Unanswered(f"{NO_ANSWER}: expected a probability from 0 to 1, got {shown}")


def status_of(error: object) -> int:
    """Return the HTTP status that an error within a reply names; 500 where it names none."""
    fields = fields_of(error)
    for name in ("status", "code", "status_code"):
        number = fields.get(name)
        if isinstance(number, str) and number.isdecimal():
            number = int(number)
        if isinstance(number, int) and 400 <= number < 600:
            return number
    words = json.dumps(error).lower()
    return next((status for pattern, status in _STATUSES if re.search(pattern, words)), 500)


# -- questions and their answers in words ----------------------------------------------------------


def words_in(text: str, prompt: Prompt, template: Template) -> tuple[Value, ...]:
    """Return the values of a reply in words, one per concept."""
    answer = without_thinking(text)
    if isinstance(answer, Unanswered):
        return (answer,) * len(prompt.concepts)
    parts = template.split(answer, len(prompt.concepts))
    return tuple(value_of(part, prompt, place) for place, part in enumerate(parts))


def in_words(prompt: Prompt) -> bool:
    """Return whether its questions are in words, and so are to be answered in words."""
    return any(ask.text for ask in prompt.asks)


def value_of(part: str | Unanswered, prompt: Prompt, place: int) -> Value:
    """Return words if the question is in words, else Yes or No as 1.0 or 0.0."""
    if isinstance(part, Unanswered):
        return part
    if prompt.asks and prompt.asks[place].text:
        return part.strip() or Unanswered(NO_ANSWER)
    return yes_or_no(part, prompt.concepts[place])


def schema_of(prompt: Prompt) -> JsonObject:
    """Return the JSON schema of an object with a probability per concept."""
    names = names_in(prompt)
    return {
        "type": "object",
        "properties": {name: {"type": "number"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def names_in(prompt: Prompt) -> list[str]:
    """Return the names of the probabilities of a prompt's concepts in JSON."""
    count = len(prompt.concepts)
    return ["probability"] if count == 1 else [str(i) for i in range(1, count + 1)]
