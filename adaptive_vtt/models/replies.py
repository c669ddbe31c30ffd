"""Reading P(yes) and answers in words out of what a chat model replies."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..types import JsonObject, Prompt, Unanswered, Value
from .network.prompt_templates import Template

NO_ANSWER = "no answer"
REFUSED = "refused: "
"""Before the words of a refusal."""

_SHOWN = 80
"""Characters of a refusal that are kept."""

PUBLIC_REFUSALS = re.compile(
    r"can(?:no|')t help with images of people|can(?:no|')t process this file"
    r"|sorry, but without the image provided|[Cc]annot determine the answer"
)
"""The four refusals that the public rule knows."""

_REFUSALS = re.compile(
    r"(?:\bI(?:'m| am)?\b[^.!?\n]{0,30})?\b(?:"
    r"(?:can(?:no|')t|cannot|can not|won't|will not|unable to|not able to|not in a position to)"
    r" (?:\w+ )?(?:help|assist|process|provide|analy[sz]e|interpret|diagnose|determine|identify"
    r"|answer|comply|view|see|tell)"
    r"|sorry, but without the image|decline to|as an ai\b"
    r"|(?:consult|ask|see) an? (?:\w+ )?(?:doctor|physician|gastroenterologist|professional)"
    r")[^\n]*",
    re.IGNORECASE,
)


def refused(reply: str) -> str | None:
    """The words with which a reply refuses, shortened; None where it does not."""
    found = PUBLIC_REFUSALS.search(reply) or _REFUSALS.search(reply)
    return " ".join(found.group().split())[:_SHOWN] if found else None


def conclusion(reply: str) -> str:
    """What stands after the last "Final answer:", or the whole reply where there is none.

    For free answers after reasons, which may name the truth and its contrary alike.
    """
    found = re.split(r"(?i)final\s+answer\s*(?:is\b|[:=])\s*", reply)
    return found[-1].strip("* \n") if len(found) > 1 else reply


_OBJECT = re.compile(r"\{[^{}]*\}")


def p_yes(tokens: Iterable[Mapping[str, Any]]) -> float | None:
    """P(yes) where a reply says Yes or No: their probabilities, normalised over the two.

    ``tokens``: the reply's tokens, each with ``token``, ``logprob``, ``top_logprobs``. A reply
    that begins with Yes or No says it there, any other (reasons first) where it last does.
    None for a reply that says neither.
    """
    said = [token for token in tokens if _plain(token["token"])]
    deciding = [token for token in said if _plain(token["token"]) in ("yes", "no")]
    if not deciding:
        return None
    token = said[0] if said[0] is deciding[0] else deciding[-1]
    # the token said is among the likeliest too, where the server lists as many
    listed = (token, *(token.get("top_logprobs") or ()))
    alternatives = {one["token"]: one["logprob"] for one in listed}
    mass = {"yes": 0.0, "no": 0.0}
    for text, logprob in alternatives.items():
        if _plain(text) in mass:
            mass[_plain(text)] += math.exp(logprob)
    total = mass["yes"] + mass["no"]
    return mass["yes"] / total if total > 0 else None


def yes_or_no(text: str) -> Value:
    """1.0 or 0.0 where a reply concludes or begins with Yes or No, or has one of them alone."""
    text = conclusion(text)
    said = re.findall(r"\b(yes|no)\b", text.lower())
    begins = re.match(r"\W*(yes|no)\b", text.lower())
    if begins or len(set(said)) == 1:
        return float((begins.group(1) if begins else said[0]) == "yes")
    refusal = refused(text)
    return Unanswered(REFUSED + refusal if refusal else NO_ANSWER)


def are_weighed(tokens: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the log-probabilities of alternatives stand beside the tokens."""
    return any(token.get("top_logprobs") for token in tokens)


def stated_in(text: str, names: Sequence[str]) -> tuple[Value, ...] | None:
    """The probabilities under ``names`` in the JSON of a reply, or the last of it in its words;
    None where there is none with such a name."""
    for found in (text, *_OBJECT.findall(text)[-1:]):
        try:
            said = json.loads(found)
        except (ValueError, RecursionError):
            continue
        if (values := stated(said, names)) is not None:
            return values
    return None


def stated(said: object, names: Sequence[str]) -> tuple[Value, ...] | None:
    """The probabilities under ``names`` of an object; None where it has none of the names."""
    if not isinstance(said, Mapping) or said.keys().isdisjoint(names):
        return None
    found = [said.get(name) for name in names]
    return tuple(
        float(p) if isinstance(p, int | float) and 0 <= p <= 1 else Unanswered(NO_ANSWER)
        for p in found
    )


def words_in(text: str, prompt: Prompt, template: Template) -> tuple[Value, ...]:
    """A reply in words, a value per concept."""
    parts = template.split(text, len(prompt.concepts))
    return tuple(value_of(part, prompt, place) for place, part in enumerate(parts))


def in_words(prompt: Prompt) -> bool:
    """Whether its questions are in words, and so are to be answered in words."""
    return any(ask.text for ask in prompt.asks)


def value_of(part: str | Unanswered, prompt: Prompt, place: int) -> Value:
    """Words where the question is in words, else P(yes)."""
    if isinstance(part, Unanswered):
        return part
    if prompt.asks and prompt.asks[place].text:
        return part.strip() or Unanswered(NO_ANSWER)
    return yes_or_no(part)


def schema_of(prompt: Prompt) -> JsonObject:
    """The JSON schema of an object with a probability per concept."""
    names = names_in(prompt)
    return {
        "type": "object",
        "properties": {name: {"type": "number"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def names_in(prompt: Prompt) -> list[str]:
    """What the probabilities of a prompt's concepts are called in JSON."""
    count = len(prompt.concepts)
    return ["probability"] if count == 1 else [str(i) for i in range(1, count + 1)]


def _plain(token: str) -> str:
    return token.strip(" \n\t.,:;!*\"'()").lower()
