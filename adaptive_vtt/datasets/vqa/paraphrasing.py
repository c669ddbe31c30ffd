"""More wordings of questions, from a chat model, each kept only where it asks the same.

The model is asked once per kind of question. What it is asked is written to a file of JSON lines
before it is sent, and what it said once that has come: so nothing is paid for twice, and a call
that was interrupted counts at the most that it can have cost.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InputError
from ...types import JsonObject
from ...utils.files import write_text
from .taxonomy import SEVERAL, granularity
from .wordings import WORDS

MAX_LENGTH = 300
"""Characters of a wording, at most."""
PARAPHRASES, WORDED_BY = "paraphrases.jsonl", "worded_by"
"""The file beside the sets, and in sources.csv the column that names who worded a question."""
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
    """``wordings``: kind -> templates by the model ``by``; ``refused``: what was wrong with others,
    a sentence each; ``left``: kinds of which the money allowed no asking; ``cost``: of this run."""

    by: str
    wordings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    cost: float = 0.0

    def together(self) -> Mapping[str, tuple[str, ...]]:
        """Our wordings and these."""
        return {kind: (*ours, *self.wordings.get(kind, ())) for kind, ours in WORDS.items()}

    def author(self, question: str) -> str:
        """Who worded a question: the model, or "" for ourselves."""
        parts = (map(re.escape, re.split(r"\{\w+\}", words)) for words in self._templates)
        return self.by if any(re.fullmatch(".+".join(p), question) for p in parts) else ""

    @property
    def _templates(self) -> Iterator[str]:
        return (words for templates in self.wordings.values() for words in templates)


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
    """``count`` more wordings of each of these kinds, as ``say`` gives them.

    ``journal``: the file; ``by``: the model's name; ``most``: what a call can cost at most;
    ``max_cost``: what all calls in the file may cost together (None: no cap). Raises InputError for
    a file that is none.
    """
    rows = _read(journal)
    made = Paraphrases(by)
    for kind in dict.fromkeys(kinds):
        text = PROMPT.format(
            wordings="\n".join(WORDS[kind]), count=count, kept=", ".join(kept_words(kind))
        )
        row = rows.get((by, text), {"model": by, "kind": kind, "prompt": text, "cost": 0.0})
        if "reply" not in row:
            booked = float(row["cost"]) + most  # what an interrupted call may have cost stays so
            others = sum(float(one["cost"]) for key, one in rows.items() if key != (by, text))
            if max_cost is not None and others + booked > max_cost:
                made.left.append(kind)
                continue
            _write(journal, rows | {(by, text): {**row, "cost": booked}})
            reply, reason, cost = say(text)
            row |= {"reply": reply, "reason": reason, "cost": row["cost"] + cost}
            rows[by, text] = row
            _write(journal, rows)
            made.cost += cost
        _take(made, kind, row)
    return made


def _take(made: Paraphrases, kind: str, row: JsonObject) -> None:
    """What of a reply is a wording, and what is not."""
    if row["reply"] is None:
        made.refused.append(f"{kind}: no reply: {row['reason']}")
        return
    found: list[str] = []
    for line in str(row["reply"]).splitlines():
        template = " ".join(_NUMBERED.sub("", line, count=1).split()).strip('"')
        if template:
            wrong = fault(kind, template, (*WORDS[kind], *found))
            if wrong is None:
                found.append(template)
            else:
                made.refused.append(f"{kind}: {template[:MAX_LENGTH]!r}: {wrong}")
    made.wordings[kind] = tuple(found)


def _write(journal: Path, rows: Mapping[tuple[str, str], JsonObject]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
    write_text(journal, "".join(lines))


def _read(journal: Path) -> dict[tuple[str, str], JsonObject]:
    """(model, prompt) -> its row."""
    found: dict[tuple[str, str], JsonObject] = {}
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            float(row["cost"])
            found[row["model"], row["prompt"]] = row
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{journal}, line {number}: expected what a model was asked and said, as "
                "--paraphrase writes it; move the file away, and it is paid for anew"
            ) from None
    return found
