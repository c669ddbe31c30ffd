"""More wordings of questions, from a chat model, each kept only where it asks the same.

The model is asked once per kind of question. What it is asked is written to a file of JSON lines
before it is sent, and what it said once that has come: so nothing is paid for twice, and a call
that was interrupted counts at the most that it can have cost.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError
from ...types import JsonObject
from ...utils.files import write_text
from .taxonomy import SEVERAL, granularity
from .wordings import WORDS

MAX_LENGTH = 300
"""Characters of a wording, at most."""
PARAPHRASES = "paraphrases.jsonl"
"""The file in the folder of the sets."""
PROMPT = """\
Questions of one kind are asked about medical images, in any of these words:
{wordings}
Write {count} more ways to ask exactly the same, in plain English. Each must hold, as it stands: \
{kept}. Write one question a line, and nothing else."""
_TOKEN = re.compile(r"\{\w*\}|\[[^\]]*\]|[a-z]{3,}", re.IGNORECASE)
_STOP = {"the", "any", "this", "that", "these", "what", "which", "are", "does"}
_NUMBERED = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")

Say = Callable[[str], tuple[str | None, str, float]]
"""A text -> the model's words (None: none), why there are none, and the cost."""


@dataclass
class Paraphrases:
    """``wordings``: kind -> templates by the model; ``refused``: what was wrong with others, a
    sentence each; ``left``: kinds that the money did not allow; ``cost``: of this run."""

    wordings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    cost: float = 0.0

    def together(self) -> Mapping[str, tuple[str, ...]]:
        """Return our wordings and these."""
        return {kind: (*ours, *self.wordings.get(kind, ())) for kind, ours in WORDS.items()}


def kept_words(kind: str) -> list[str]:
    """What all our wordings of a kind have in common: places in braces, names, units."""
    first, *others = ({t.lower(): t for t in _TOKEN.findall(words)} for words in WORDS[kind])
    return [
        token for key, token in first.items() if key not in _STOP and all(key in o for o in others)
    ]


def fault(kind: str, template: str, known: Iterable[str]) -> str | None:
    """Why a template is no wording of this kind that is not ``known`` yet; None where it is one."""
    tokens, rest = [token.lower() for token in _TOKEN.findall(template)], template
    for word in kept_words(kind):
        if word.lower() not in tokens:
            return f"it loses {word!r}"
        if word[0] == "{":
            rest = rest.replace(word, "", 1)
    if "{" in rest or "}" in rest:
        return "it has braces that nothing fills"
    if len(template) > MAX_LENGTH:
        return f"it has more than {MAX_LENGTH} characters"
    if (
        kind == "multi"
        and granularity("Region Recognition", "Multi-region Recognition", template) != SEVERAL
    ):
        return "it says by itself whether boxes or outlines are drawn"
    if template.casefold() in {one.casefold() for one in known}:
        return "it is known already"
    return None


def paraphrased(
    kinds: Iterable[str],
    say: Say,
    journal: Path,
    *,
    by: str,
    count: int,
    most: float,
    max_cost: float | None,
) -> Paraphrases:
    """Return ``count`` more wordings of each of these kinds, as ``say`` gives them.

    Args:
        kinds: Keys of WORDS.
        say: Asks the model.
        journal: The file of what was asked and said.
        by: The model's name.
        count: Wordings per kind.
        most: What a call can cost at most.
        max_cost: What all calls in the file may cost together; None: no cap.

    Raises:
        InputError: The file is none that this function wrote.
    """
    rows, made = _read(journal), Paraphrases()

    def write() -> None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
        write_text(journal, "".join(lines))

    for kind in dict.fromkeys(kinds):
        words, kept = "\n".join(WORDS[kind]), ", ".join(kept_words(kind))
        text = PROMPT.format(wordings=words, count=count, kept=kept)
        row = rows.get((by, text), {"model": by, "kind": kind, "prompt": text, "cost": 0.0})
        if "reply" not in row:
            spent = sum(float(one["cost"]) for one in rows.values())
            if max_cost is not None and spent + most > max_cost:
                made.left.append(kind)
                continue
            rows[by, text] = {**row, "cost": row["cost"] + most}  # booked, should it be cut off
            write()
            reply, reason, cost = say(text)
            rows[by, text] = row = row | {
                "reply": reply,
                "reason": reason,
                "cost": row["cost"] + cost,
            }
            write()
            made.cost += cost
        _take(made, kind, row)
    return made


def _take(made: Paraphrases, kind: str, row: JsonObject) -> None:
    """Sort the lines of a reply into wordings and what is none."""
    if row["reply"] is None:
        made.refused.append(f"{kind}: no reply: {row['reason']}")
        return
    good: list[str] = []
    for line in str(row["reply"]).splitlines():
        template = " ".join(_NUMBERED.sub("", line, count=1).split()).strip('"')
        wrong = fault(kind, template, (*WORDS[kind], *good)) if template else ""
        if wrong:
            made.refused.append(f"{kind}: {template[:MAX_LENGTH]!r}: {wrong}")
        elif template:
            good.append(template)
    made.wordings[kind] = tuple(good)


def _read(journal: Path) -> dict[tuple[str, str], JsonObject]:
    """Return (model, prompt) -> its row."""
    try:
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        rows = [{**row, "cost": float(row["cost"])} for row in map(json.loads, lines)]
        return {(row["model"], row["prompt"]): row for row in rows}
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{journal}: expected what --paraphrase wrote, got another line; move the file away, "
            "and all is paid for again"
        ) from None
