"""Further wordings of questions from a chat model, which is asked once per kind of question.

A wording is kept only if it contains all words on which the meaning depends.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .taxonomy import PLACES, SEVERAL, WORDS, granularity

PROMPT = """\
Questions of one kind are asked about medical images, in any of these words:
{wordings}
Write three more ways to ask exactly the same, in plain English. Each must contain, unchanged: \
{kept}. Write one question a line, and nothing else."""
_TOKEN = re.compile(r"\{\w*\}|\[[^\]]*\]|[a-z]{3,}", re.IGNORECASE)
_STOP = {"the", "any", "this", "that", "these", "what", "which", "are", "does"}
_NUMBERED = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")


@dataclass
class Paraphrases:
    """Wordings from a chat model.

    Attributes:
        wordings: Kind of question -> templates.
        refused: A message for each template that was refused.
        cost: Cost of all calls.
    """

    wordings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    cost: float = 0.0

    def together(self) -> Mapping[str, tuple[str, ...]]:
        """Return the built-in wordings and the new ones."""
        return {kind: (*ours, *self.wordings.get(kind, ())) for kind, ours in WORDS.items()}


def kept_words(kind: str) -> list[str]:
    """Return the words, placeholders and units that all built-in wordings of a kind share."""
    first, *others = ({t.lower(): t for t in _TOKEN.findall(words)} for words in WORDS[kind])
    return [t for key, t in first.items() if key not in _STOP and all(key in o for o in others)]


def fault(kind: str, template: str, known: Iterable[str]) -> str | None:
    """Return the reason why a template is no new wording of a kind; None if it is one.

    Args:
        kind: The kind of question.
        template: The template.
        known: The wordings that are known already.
    """
    tokens, unfilled = _TOKEN.findall(template.lower()), template
    for word in kept_words(kind):
        if word.lower() not in tokens:
            return f"it loses {word!r}"
        if word[0] == "{":
            unfilled = unfilled.replace(word, "", 1)
    if "{" in unfilled or "}" in unfilled:
        return "it has braces that nothing fills"
    if kind == "multi" and granularity(*PLACES["multi"], template) != SEVERAL:
        return "it says by itself whether boxes or outlines are drawn"
    if template.casefold() in {wording.casefold() for wording in known}:
        return "it is known already"
    return None


def paraphrased(
    kinds: Iterable[str], say: Callable[[str], tuple[str, float]], most: float, max_cost: float
) -> Paraphrases:
    """Return further wordings of each of these kinds.

    Args:
        kinds: Keys of WORDS.
        say: Function from a text to the model's reply, "" for none, and its cost.
        most: The most that a call can cost.
        max_cost: The most that all calls may cost together.
    """
    result = Paraphrases()
    for kind in kinds:
        if result.cost + most > max_cost:
            result.refused.append(f"{kind}: not asked, as --max-cost is reached")
            continue
        kept = ", ".join(kept_words(kind))
        reply, cost = say(PROMPT.format(wordings="\n".join(WORDS[kind]), kept=kept))
        result.cost += cost
        accepted: list[str] = []
        for line in reply.splitlines() or ["no reply"]:
            template = " ".join(_NUMBERED.sub("", line, count=1).split()).strip('"')
            if reason := template and fault(kind, template, (*WORDS[kind], *accepted)):
                result.refused.append(f"{kind}: {template!r}: {reason}")
            elif template:
                accepted.append(template)
        result.wordings[kind] = tuple(accepted)
    return result
