"""The classes that captions name: MetaIC's rules after an insertion, ROME's after a removal.

Sources: Yu et al., Automated Testing of Image Captioning Systems (ISSTA 2022) and ROME (ISSTA
2023) with their public code, as compared with in REIC (TSE 2024), sections II-C and V-B.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.base import Premise, UnansweredLoss
from adaptive_vtt.oracles.captioned import (
    NOT_CAPTIONED,
    QUESTION,
    CaptionOracle,
    QuestionOption,
    caption_of,
)
from adaptive_vtt.oracles.captions import Reader, Same, language
from adaptive_vtt.oracles.captions.localising import rounded
from adaptive_vtt.oracles.choice import scored
from adaptive_vtt.relations.base import RelationDefaults
from adaptive_vtt.types import Box, JsonObject, Outcome, Question
from adaptive_vtt.utils.options import Option

from .metaic_rome import ROME, MetaIC

COCO = tuple(Path(__file__).with_name("coco_classes.txt").read_text("utf-8").split("\n")[1:-1])
"""The 80 classes that both methods know."""

_PLURALS = {
    "person": "people",
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "knife": "knives",
    "sheep": "sheep",
    "fish": "fish",
}
_PAIRS = {"skis": "ski", "scissors": "scissor"}
_ARTICLES = ("a", "an", "one", "another", "single")
_BREAKS = ("of", "and", "with", "in", "on", "at", "by", "near", "to")

METAIC_RULES: Mapping[int, str] = {
    1: "what was named must be named again, with what was inserted, and nothing else",
    2: "numbers must stay as they were",
}
ROME_RULES: Mapping[int, str] = {
    1: "nothing new may be named, and all that is still there must be",
    2: "what was removed must not be named",
}

Counts = Mapping[str, int]
"""Class -> how often a caption names it: 1 for a word in the singular, 2 for one in the plural."""


class CaptionClasses(CaptionOracle):
    """Loss 1 where a caption breaks a rule of MetaIC (after an insertion) or ROME (a removal).

    MetaIC, rule 1: the classes are the source caption's and the inserted one; rule 2: each in
    its old number, the inserted one in the plural only where the source caption named it.
    ROME, rule 1: no new class, and only the removed one may be gone; rule 2: a removed class
    that the source caption named exactly once is gone.

    ``classes`` that are looked for, besides those annotated in the picture, in the singular or
    plural. ``reader``: only nouns it finds count. ``same`` (needs a reader): other nouns count
    as a class that either caption names literally, where they mean the same. A follow-up whose
    source was not captioned is excluded; one that MetaIC or ROME could not make is the source
    again, breaks no rule, and counts with loss 0: the rate is about all pictures. Raises
    InputError for ``same`` without a reader.
    """

    def __init__(
        self,
        classes: Annotated[
            Sequence[str], Option("the names that count (default: the 80 of COCO)")
        ] = COCO,
        reader: Reader | None = None,
        same: Same | None = None,
        *,
        question: QuestionOption = QUESTION,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        super().__init__(question, unanswered_loss)
        if same is not None and reader is None:
            raise InputError("caption classes: expected a reader of nouns beside same, got none")
        self.classes = tuple(classes)
        self.reader = reader
        self.same = same

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """After insertions and removals alone."""
        return isinstance(relation, MetaIC | ROME)

    def expect(self, premise: Premise) -> "Change | None":
        """None where the source was not captioned."""
        sample = premise.sample
        caption = caption_of(premise.source_answer, sample.id)
        if caption is None or sample.image is None:
            return None
        height, width = sample.image.shape[:2]
        return Change(premise.follow_up.details, sample.boxes, (height, width), caption)

    def judge(
        self, question: Question, answer: Any, expected: "Change | None", source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return NOT_CAPTIONED
        if expected.reason and isinstance(answer, str):
            return replace(scored(True), details=expected.told(answer, []))
        unread = self.unread(answer, question.sample_id)
        if unread is not None:
            return unread
        source, said = classes_named(
            (expected.source, answer), (*self.classes, *expected.labels), self.reader, self.same
        )
        objects = expected.objects(source, said)
        broken = any(each["rule"] for each in objects)
        return replace(scored(not broken), details=expected.told(answer, objects))


def other_words(classes: Sequence[str] = COCO) -> CaptionClasses:
    """Return the oracle of ROME's code, which counts other nouns of the same meaning, too."""
    return CaptionClasses(classes, language.reader(), language.same())


@dataclass(frozen=True)
class Change:
    """What was done to a source picture.

    ``details`` are the follow-up's; ``boxes`` what is annotated in the source, which is of
    ``size`` (height, width) in pixels; ``source`` its caption.
    """

    details: Mapping[str, Any]
    boxes: tuple[Box, ...]
    size: tuple[int, int]
    source: str

    @property
    def reason(self) -> str:
        """Why nothing was done, or ""."""
        return str(self.details.get("not eligible", ""))

    @property
    def changed(self) -> set[str]:
        """The class that was inserted, or those that were removed."""
        inserted = self.details.get("inserted")
        return set(map(named, [inserted] if inserted else self.details.get("removed", ())))

    @property
    def labels(self) -> list[str]:
        """Every class known to be in the source or the follow-up."""
        return sorted({named(box.label) for box in self.boxes if box.label} | self.changed)

    def objects(self, source: Counts, said: Counts) -> list[JsonObject]:
        """One entry per class that is named or changed, with the rule it breaks, if any."""
        changed, known = self.changed, set(self.labels)
        if "inserted" in self.details:
            rules, broken = METAIC_RULES, after_insertion(source, said, *changed)
            done = dict.fromkeys(changed, "inserted")
        else:
            rules, broken = ROME_RULES, after_removal(source, said, changed)
            done = {c: "disappeared" if source.get(c) == 1 else "ambiguous" for c in changed}
        return [
            {
                "name": name,
                "boxes": [rounded(b) for b in self.boxes if named(b.label) == name],
                "visible": None,
                "status": done.get(name, "retained" if name in source else "new"),
                "named": name in said,
                "rule": broken.get(name),
                "rule_text": rules.get(broken.get(name, 0)),
                "type": _type(name, said, broken, done, known),
            }
            for name in sorted(changed | set(source) | set(said))
        ]

    def told(self, caption: str, objects: list[JsonObject]) -> JsonObject:
        return {
            "source": self.source,
            "caption": caption,
            "reduction": self._words(),
            "size": list(self.size),
            "boxes": [[box.label, *rounded(box)] for box in self.boxes],
            "objects": objects,
            "comparable": not self.reason,
            "versions": 0,
        }

    def _words(self) -> str:
        if self.reason:
            return f"none: {self.reason}"
        boxes = self.details.get("boxes") or (self.details["box"],)
        places = " ".join("{:.0f},{:.0f},{:.0f},{:.0f}".format(*rounded(b)) for b in boxes)
        if "inserted" in self.details:
            return f"insert {self.details['inserted']} {places} over {self.details['overlap']:.0%}"
        return f"remove {', '.join(self.details['removed'])} {places}"


def after_insertion(source: Counts, said: Counts, inserted: str) -> dict[str, int]:
    """Class -> the rule of MetaIC that it breaks."""
    wanted = {name: source.get(name, 0) > 1 for name in source}
    wanted[inserted] = inserted in source
    broken = dict.fromkeys(wanted.keys() ^ said.keys(), 1)
    several = (name for name in wanted.keys() & said.keys() if wanted[name] != (said[name] > 1))
    return broken | dict.fromkeys(several, 2)


def after_removal(source: Counts, said: Counts, removed: set[str]) -> dict[str, int]:
    """Class -> the rule of ROME that it breaks."""
    lost = source.keys() - said.keys() - removed
    still = {name for name in removed & said.keys() if source.get(name) == 1}
    return dict.fromkeys((said.keys() - source.keys()) | lost, 1) | dict.fromkeys(still, 2)


def _type(
    name: str, said: Counts, broken: Mapping[str, int], done: Mapping[str, str], known: set[str]
) -> str | None:
    """REIC's type of error that a broken rule most likely means; a wrong number has none."""
    if name not in broken or (broken[name] == 2 and done.get(name) != "disappeared"):
        return None
    if broken[name] == 2:
        return "3"
    if name in said:
        return "2.1" if name in known else "1.2"
    return "2.2" if name in known else "1.1"


# -- classes in words ----------------------------------------------------------------------


def classes_named(
    captions: Sequence[str],
    classes: Iterable[str],
    reader: Reader | None = None,
    same: Same | None = None,
) -> list[Counter[str]]:
    """How often each caption names each class; longer names go first ("hot dog" is no dog).

    With a reader a name counts where its last word is in a noun phrase. With ``same`` phrases
    without a class count as any class that is named literally in one of the captions.
    """
    table = _table(tuple(dict.fromkeys(map(named, classes))))
    nouns = [None if reader is None else reader.objects(caption) for caption in captions]
    found = [_literal(_words(c), table, n) for c, n in zip(captions, nouns, strict=True)]
    present = sorted({name for counts in found for name in counts})
    if same is None:
        return found
    for counts, phrases in zip(found, nouns, strict=True):
        for phrase in phrases or ():
            if not _literal(_words(phrase), table, None):
                meant = [name for name in present if same(phrase, name)]
                counts.update(dict.fromkeys(meant, 1 + _plural_word(phrase)))
    return found


def named(label: str) -> str:
    return " ".join(_words(label))


def plural(name: str) -> str:
    """The plural of an English noun, by rule but for a few."""
    if name in _PAIRS:
        return name
    first, _, last = name.rpartition(" ")
    if last in _PLURALS:
        last = _PLURALS[last]
    elif re.search(r"(s|x|z|ch|sh)$", last):
        last += "es"
    else:
        last = re.sub(r"(?<=[^aeiou])y$", "ie", last) + "s"
    return f"{first} {last}".strip()


@lru_cache(maxsize=256)
def _table(classes: tuple[str, ...]) -> dict[tuple[str, ...], tuple[str, int]]:
    """Words -> the class and 1 for the singular, 2 for the plural, 0 where they are the same."""
    table = {}
    for name in classes:
        one, several = _PAIRS.get(name, name), plural(name)
        table[tuple(several.split())] = name, 2
        table[tuple(one.split())] = name, int(one != several)
    return table


def _literal(
    words: Sequence[str],
    table: Mapping[tuple[str, ...], tuple[str, int]],
    phrases: Sequence[str] | None,
) -> Counter[str]:
    nouns = None if phrases is None else {word for phrase in phrases for word in _words(phrase)}
    longest = max(map(len, table), default=0)
    found: Counter[str] = Counter()
    start = 0
    while start < len(words):
        for length in range(min(longest, len(words) - start), 0, -1):
            here = tuple(words[start : start + length])
            if here in table and (nouns is None or here[-1] in nouns):
                name, number = table[here]
                found[name] += number or (1 if _single(words[:start]) else 2)
                start += length - 1
                break
        start += 1
    return found


def _single(before: Sequence[str]) -> bool:
    """Whether a noun that is its own plural stands after an article for one."""
    for word in reversed(before[-3:]):
        if word in _ARTICLES or word in _BREAKS:
            return word in _ARTICLES
    return False


def _plural_word(phrase: str) -> bool:
    last = phrase.split()[-1]
    return last in _PLURALS.values() or bool(re.search(r"(?<!s)s$", last))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
