"""Judge the classes that captions name by MetaIC's rules (insertion) or ROME's (removal).

Sources: Yu et al., Automated Testing of Image Captioning Systems (ISSTA 2022), and ROME (ISSTA
2023), both with their public code. REIC (TSE 2024) compares itself with them in sections II-C and
V-B.
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

from .metaic_rome import NOT_ELIGIBLE, ROME, MetaIC

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
"""Words that end a noun phrase: an article before them belongs to another noun."""

METAIC_RULES: Mapping[int, str] = {
    1: "the source's classes and the inserted one must be named, and no other",
    2: "no class may change between singular and plural",
}
ROME_RULES: Mapping[int, str] = {
    1: "no new class may be named, and those not removed must be named",
    2: "a removed class must not be named",
}

Counts = Mapping[str, int]
"""Class -> how often a caption names it: 1 for a word in the singular, 2 for one in the plural."""


class CaptionClasses(CaptionOracle):
    """Oracle with loss 1 if a caption breaks a rule of MetaIC (insertion) or of ROME (removal).

    - MetaIC, rule 1: the caption names the source caption's classes and the inserted one, and no
      other. Rule 2: each class keeps its number. The inserted one is in the plural exactly if the
      source caption named it.
    - ROME, rule 1: the caption names no new class, and lacks none but removed ones. Rule 2: it does
      not name a removed class that the source caption named in the singular.

    A follow-up whose source was not captioned is excluded. One that MetaIC or ROME could not make
    is the source again. It breaks no rule and has loss 0, so the rate is about all pictures.

    Args:
        classes: Names that count, in singular and plural, with those annotated in the picture.
        reader: If given, only the nouns that it reads count.
        same: Comparison of words, which needs a reader. If given, a noun that is no class counts
            as each class with the same meaning that either caption names literally.
        question: The question about each image.
        unanswered_loss: Loss of a question without answer.

    Raises:
        InputError: There is ``same`` without a reader.
    """

    def __init__(
        self,
        classes: Annotated[
            Sequence[str], Option("names of classes that count (default: COCO's 80)")
        ] = COCO,
        reader: Reader | None = None,
        same: Same | None = None,
        *,
        question: QuestionOption = QUESTION,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        super().__init__(question, unanswered_loss)
        if same is not None and reader is None:
            raise InputError("caption classes: expected a reader of nouns with same, got none")
        self.classes = tuple(classes)
        self.reader = reader
        self.same = same

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Return whether the relation inserts or removes objects."""
        return isinstance(relation, MetaIC | ROME)

    def expect(self, premise: Premise) -> "Change | None":
        """Return the change of the picture, None if the source was not captioned."""
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
            return replace(scored(True), details=expected.details_of(answer, []))
        unread = self.unread(answer, question.sample_id)
        if unread is not None:
            return unread
        before, after = classes_named(
            (expected.source, answer), (*self.classes, *expected.labels), self.reader, self.same
        )
        objects = expected.objects(before, after)
        broken = any(each["rule"] for each in objects)
        return replace(scored(not broken), details=expected.details_of(answer, objects))


def other_words(classes: Sequence[str] = COCO) -> CaptionClasses:
    """Return the oracle of ROME's code, which also counts other nouns with the same meaning."""
    return CaptionClasses(classes, language.reader(), language.same())


@dataclass(frozen=True)
class Change:
    """The change of a source picture.

    Attributes:
        details: The follow-up's details.
        boxes: Objects annotated in the source.
        size: Height and width of the source in pixels.
        source: Caption of the source.
    """

    details: Mapping[str, Any]
    boxes: tuple[Box, ...]
    size: tuple[int, int]
    source: str

    @property
    def reason(self) -> str:
        """Why nothing was changed, or ""."""
        return str(self.details.get(NOT_ELIGIBLE, ""))

    @property
    def changed(self) -> set[str]:
        """The inserted class, or the removed ones."""
        inserted = self.details.get("inserted")
        return set(map(named, [inserted] if inserted else self.details.get("removed", ())))

    @property
    def labels(self) -> list[str]:
        """Every class known to be in the source or the follow-up."""
        return sorted({named(box.label) for box in self.boxes if box.label} | self.changed)

    def objects(self, source: Counts, follow_up: Counts) -> list[JsonObject]:
        """Return an entry for each class that is named or changed, with the rule that it breaks.

        Args:
            source: Classes that the source's caption names.
            follow_up: Classes that the follow-up's caption names.
        """
        changed, known = self.changed, set(self.labels)
        if "inserted" in self.details:
            rules, broken = METAIC_RULES, after_insertion(source, follow_up, *changed)
            status = dict.fromkeys(changed, "inserted")
        else:
            rules, broken = ROME_RULES, after_removal(source, follow_up, changed)
            status = {c: "disappeared" if source.get(c) == 1 else "ambiguous" for c in changed}
        return [
            {
                "name": name,
                "boxes": [rounded(b) for b in self.boxes if named(b.label) == name],
                "visible": None,
                "status": status.get(name, "retained" if name in source else "new"),
                "named": name in follow_up,
                "rule": broken.get(name),
                "rule_text": rules.get(broken.get(name, 0)),
                "type": _type(name, follow_up, broken, status, known),
            }
            for name in sorted(changed | set(source) | set(follow_up))
        ]

    def details_of(self, caption: str, objects: list[JsonObject]) -> JsonObject:
        """Return the details of the outcome, for the journal."""
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


def after_insertion(source: Counts, follow_up: Counts, inserted: str) -> dict[str, int]:
    """Return class -> the rule of MetaIC that it breaks."""
    plurals = {name: count > 1 for name, count in source.items()}
    plurals[inserted] = inserted in source
    broken = dict.fromkeys(plurals.keys() ^ follow_up.keys(), 1)
    both = plurals.keys() & follow_up.keys()
    return broken | {name: 2 for name in both if plurals[name] != (follow_up[name] > 1)}


def after_removal(source: Counts, follow_up: Counts, removed: set[str]) -> dict[str, int]:
    """Return class -> the rule of ROME that it breaks."""
    new, lost = follow_up.keys() - source.keys(), source.keys() - follow_up.keys() - removed
    still_named = {name for name in removed & follow_up.keys() if source.get(name) == 1}
    return dict.fromkeys(new | lost, 1) | dict.fromkeys(still_named, 2)


def _type(
    name: str,
    follow_up: Counts,
    broken: Mapping[str, int],
    status: Mapping[str, str],
    known: set[str],
) -> str | None:
    """Return the most likely of REIC's types of error, None without one or for a wrong number."""
    if name not in broken or (broken[name] == 2 and status.get(name) != "disappeared"):
        return None
    if broken[name] == 2:
        return "3"
    if name in follow_up:
        return "2.1" if name in known else "1.2"
    return "2.2" if name in known else "1.1"


# -- classes in words ----------------------------------------------------------------------


def classes_named(
    captions: Sequence[str],
    classes: Iterable[str],
    reader: Reader | None = None,
    same: Same | None = None,
) -> list[Counter[str]]:
    """Return how often each caption names each class; longer names go first ("hot dog" is no dog).

    With a reader, a name counts if its last word is in a noun phrase. With ``same``, phrases
    without a class count as each class of the same meaning that a caption names literally.
    """
    table = _table(tuple(dict.fromkeys(map(named, classes))))
    nouns = [None if reader is None else reader.objects(caption) for caption in captions]
    counted = [_literal(_words(c), table, n) for c, n in zip(captions, nouns, strict=True)]
    present = sorted({name for counts in counted for name in counts})
    if same is None:
        return counted
    for counts, phrases in zip(counted, nouns, strict=True):
        for phrase in phrases or ():
            if not _literal(_words(phrase), table, None):
                meant = [name for name in present if same(phrase, name)]
                counts.update(dict.fromkeys(meant, 1 + _plural_word(phrase)))
    return counted


def named(label: str) -> str:
    """Return a label as captions name it: lower-case words with spaces between them."""
    return " ".join(_words(label))


def plural(name: str) -> str:
    """Return the plural of an English noun, by rule with a few exceptions."""
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
    """Return words -> the class, and 1 (singular), 2 (plural) or 0 (both are the same)."""
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
    """Return how often the words name each class literally; see ``classes_named``."""
    nouns = None if phrases is None else {word for phrase in phrases for word in _words(phrase)}
    longest = max(map(len, table), default=0)
    counts: Counter[str] = Counter()
    start = 0
    while start < len(words):
        for length in range(min(longest, len(words) - start), 0, -1):
            here = tuple(words[start : start + length])
            if here in table and (nouns is None or here[-1] in nouns):
                name, number = table[here]
                counts[name] += number or (1 if _single(words[:start]) else 2)
                start += length - 1
                break
        start += 1
    return counts


def _single(before: Sequence[str]) -> bool:
    """Return whether these words before a noun end in an article for one thing."""
    for word in reversed(before[-3:]):
        if word in _ARTICLES or word in _BREAKS:
            return word in _ARTICLES
    return False


def _plural_word(phrase: str) -> bool:
    last = phrase.split()[-1]
    return last in _PLURALS.values() or bool(re.search(r"(?<!s)s$", last))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
