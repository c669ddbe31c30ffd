"""Read the answers in a message of a chat model, in the many forms that servers send.

The content may be text, parts, numbers as text, a refusal, a call of a tool, or reasoning alone.
Each form gives an answer, or its own reason why the question stays unanswered.
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
"""Pattern of an error's text -> the HTTP status that fits it, for errors without a status."""


def received(
    choice: Mapping[str, Any], prompt: Prompt, mode: str, template: Template, longest: int
) -> Reply:
    """Return the reply in a choice of a chat completion, without its usage.

    Any exception means that the choice is malformed.

    Args:
        choice: The choice in OpenAI's protocol: message, finish_reason, logprobs.
        prompt: The prompt.
        mode: The mode in which P(yes) was asked for.
        template: The template of the prompt.
        longest: Maximum length of the reply in tokens, for the reason of a reply that was cut off.
    """
    message, finish_reason = choice["message"], choice.get("finish_reason")
    if (refusal := refusal_in(message)) is not None:
        return Reply(Unanswered(f"{REFUSED}{refusal}"), None, refusal, wanted=None)
    text, cut = text_of(message.get("content")), longest if finish_reason == "length" else None
    words = words_of_message(message, text, cut=cut is not None)
    if finish_reason == "content_filter":
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
        begins = isinstance(values, tuple) and not isinstance(values[0], Unanswered)
        if value is not None and (cut is None or begins):
            values = (value,)
    elif (stated := stated_in(text, names_in(prompt))) is not None:
        values, wanted = stated, True
    # a reply that is cut, empty or a refusal does not show whether the server supports the mode
    inconclusive = cut is not None or not text.strip() or declines(text)
    return Reply(values, None, words, wanted=wanted or (None if inconclusive else False))


def cut_off(longest: int) -> Unanswered:
    """Return a reply that was cut off at its maximum length as unanswered."""
    return Unanswered(f"cut off at max_tokens = {longest}; raise it")


def text_of(content: object) -> str:
    """Return the text of a message's content, a text or a list of parts.

    Parts other than text, such as reasoning and calls of tools, are left out.

    Raises:
        ValueError: The content is neither.
    """
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
    """Return the reason why a message without text is no answer."""
    if message.get("tool_calls") or message.get("function_call"):
        return TOOL
    parts = message.get("content")
    thought = isinstance(parts, list) and bool(parts)
    return ONLY_REASONING if thought or any(map(message.get, _REASONING)) else EMPTY


def words_of_message(message: Mapping[str, Any], text: str, *, cut: bool) -> str:
    """Return the text of a reply for the journal: its text, or its reasoning if that is empty."""
    if text.strip():
        return text + MORE * cut
    thought = next((t for t in map(message.get, _REASONING) if isinstance(t, str) and t), "")
    return thought and thought + MORE


def refusal_in(message: Mapping[str, Any]) -> str | None:
    """Return the text of the refusal in a message or a part of its content, None without one."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    for refusal in (message.get("refusal"), *(fields_of(p).get("refusal") for p in parts)):
        if refusal:
            return refusal if isinstance(refusal, str) else "the model declined"
    return None


def spoken(
    text: str, prompt: Prompt, template: Template, *, cut: int | None
) -> tuple[Value, ...] | Unanswered:
    """Return the values in a reply in words.

    Args:
        text: The reply.
        prompt: The prompt.
        template: The template of the prompt.
        cut: The length in tokens at which the reply was cut off, None if it is complete. Only an
            answer at the beginning of a cut reply counts: a later Yes may be part of its reasons.
    """
    if cut is None:
        return words_in(text, prompt, template)
    if not text.strip():
        return cut_off(cut)
    if in_words(prompt):
        return words_in(text, prompt, template)
    answer = without_thinking(text)
    beginning = "" if isinstance(answer, Unanswered) else answer
    if len(prompt.concepts) == 1:
        beginning = "".join(beginning.split()[:1])
    values = words_in(beginning, prompt, template)
    return tuple(cut_off(cut) if isinstance(value, Unanswered) else value for value in values)


def stated_in(text: str, names: Sequence[str]) -> tuple[Value, ...] | None:
    """Return the probabilities with these names in a reply that is JSON, or in the last JSON object
    within its text; None if there is none. Numbers may be written as text or per cent."""
    for part in (text, *_OBJECT.findall(text)[-1:]):
        try:
            stated = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(stated, Mapping) and not stated.keys().isdisjoint(names):
            return tuple(probability(stated.get(name)) for name in names)
    return None


def probability(value: object) -> Value:
    """Return a probability from 0 to 1, which may be written as text, or Unanswered."""
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
    """Return the HTTP status of an error within a reply: its field, else by its text, else 500."""
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
    """Return whether the questions of a prompt are in words, so that the answers are words, too."""
    return any(ask.text for ask in prompt.asks)


def value_of(answer: str | Unanswered, prompt: Prompt, place: int) -> Value:
    """Return the text of an answer if its question is in words, else 1.0 for Yes or 0.0 for No."""
    if isinstance(answer, Unanswered):
        return answer
    if prompt.asks and prompt.asks[place].text:
        return answer.strip() or Unanswered(NO_ANSWER)
    return yes_or_no(answer, prompt.concepts[place])


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
    """Return the names of the fields of `schema_of`, one per concept."""
    count = len(prompt.concepts)
    return ["probability"] if count == 1 else [str(i) for i in range(1, count + 1)]
