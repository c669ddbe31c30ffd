"""Compare the reports of MetaIC, ROME and REIC, and the images that each can use (Table II).

MetaIC inserts an object at each of its four overlaps, ROME removes one of up to three annotated
objects, and REIC asks about three follow-ups per image and relation. As their code does, MetaIC
compares the literal names of classes, and ROME also other words with the same meaning.

A report names objects. It is right if one of the captions is wrong about one of them, as the object
is left out, named as another, or made up (``TemplateCaptioner.explain``; for REIC's reports see
``caption_truth``). As in the paper, pairs of captions are counted. *violations* are pairs with a
right report, and *false alarms* those with wrong reports only. *captions* counts all captions that
were asked for, with those of sources.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adaptive_vtt.oracles import Premise
from adaptive_vtt.oracles.captions import Same, language
from adaptive_vtt.relations.reic import KINDS
from adaptive_vtt.types import CAPTION, FollowUp, Question, Sample
from adaptive_vtt.utils.random_streams import generator

from .caption_classes import CaptionClasses
from .caption_truth import KINDS_OF_WORDS
from .caption_verdicts import Bench
from .metaic_rome import NOT_ELIGIBLE, ROME, MetaIC, cut_outs
from .reic_scheme import Step
from .template_captioner import Explanation

Edit = MetaIC | ROME


@dataclass(frozen=True)
class Pair:
    """Two captions, of an image and of an edited copy.

    Attributes:
        sample: Index of the image.
        reported: Names that break a rule.
        right: Reported names about which a caption is really wrong.
    """

    sample: int
    reported: tuple[str, ...]
    right: tuple[str, ...]


def table_2(
    bench: Bench, frame: pd.DataFrame, steps: list[Step], same: Same, seed: int
) -> pd.DataFrame:
    """Return a row per method.

    Args:
        bench: The scenes and the captioner.
        frame: Verdicts of REIC (``verdicts``).
        steps: Follow-ups of REIC (``scheme``).
        same: Comparison of words.
        seed: Seed of the edits.
    """
    reader = language.reader()
    rivals: list[tuple[str, Edit, CaptionClasses]] = [
        ("MetaIC", MetaIC(cut_outs(bench.dataset)), CaptionClasses()),
        ("ROME", ROME(seed=seed), CaptionClasses(reader=reader, same=same)),
    ]
    rows = [_of_reic(kind, frame, steps) for kind in KINDS]
    for name, edit, oracle in rivals:
        pairs = list(edited(bench, edit, oracle, seed))
        rows.append({"method": name, **_counts(pairs)})
    return pd.DataFrame(rows)


def _of_reic(kind: str, frame: pd.DataFrame, steps: list[Step]) -> dict[str, Any]:
    own = [step for step in steps if step.kind == kind]
    reports = frame[(frame["relation"] == kind) & frame["reported"]]
    right = reports.groupby("case")["real"].any()
    images = {step.sample: 1 + len(step.received.versions) for step in own}
    return {
        "method": f"REIC, {kind}",
        "eligible": len(images),
        "follow-ups": len(own),
        "captions": len(own) + sum(images.values()),
        "violations": int(right.sum()),
        "false alarms": int((~right).sum()),
    }


def _counts(pairs: list[Pair]) -> dict[str, int]:
    images = {pair.sample for pair in pairs}
    return {
        "eligible": len(images),
        "follow-ups": len(pairs),
        "captions": len(images) + len(pairs),
        "violations": sum(bool(pair.right) for pair in pairs),
        "false alarms": sum(bool(pair.reported) and not pair.right for pair in pairs),
    }


def edited(bench: Bench, edit: Edit, oracle: CaptionClasses, seed: int) -> Iterator[Pair]:
    """Yield a judged pair for every follow-up that the edit can make of the scenes."""
    for index in range(len(bench.dataset)):
        sample = bench.dataset.sample(index)
        source = bench.captioner.explain(sample.require_image())
        for severity in edit.severities:
            rng = generator(seed, f"caption rivals/{edit.name}/{sample.id}/{severity}")
            follow_up = edit.apply(sample, severity, rng)
            if NOT_ELIGIBLE in follow_up.details or follow_up.image is None:
                continue
            edited_copy = bench.captioner.explain(follow_up.image)
            captions = source.caption, edited_copy.caption
            reported = _reported(edit, oracle, sample, follow_up, severity, captions)
            wrong = faults(source) | faults(edited_copy)
            right = tuple(name for name in reported if KINDS_OF_WORDS.get(name, name) in wrong)
            yield Pair(index, reported, right)


def _reported(
    edit: Edit,
    oracle: CaptionClasses,
    sample: Sample,
    follow_up: FollowUp,
    severity: int,
    captions: tuple[str, str],
) -> tuple[str, ...]:
    """Return the names that break a rule, from the captions of source and follow-up."""
    question = Question(0, sample.id, edit.name, severity, CAPTION, 1)
    expected = oracle.expect(Premise(edit, follow_up, sample, question, captions[0]))
    outcome = oracle.judge(question, captions[1], expected)
    objects = (outcome.details or {}).get("objects", ())
    return tuple(each["name"] for each in objects if each["rule"] is not None)


def faults(caption: Explanation) -> set[str]:
    """Return the kinds about which a caption is wrong.

    They are left out, named as others, named in place of others, or made up.
    """
    mistaken = {*caption.misclassified, *caption.misclassified.values()}
    return {*caption.omitted, *mistaken, *caption.fabricated}
