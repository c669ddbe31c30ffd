"""REIC's Table II: the images that MetaIC, ROME and REIC can use, and their reports.

MetaIC inserts an object at each of its four overlaps, ROME removes one of up to three annotated
objects, and REIC asks about three follow-ups per image and relation. As their code does, MetaIC
compares the literal names of classes, and ROME also other words with the same meaning.

A report is right if one of the captions has a fault about an object that it names: the object is
left out, named as another, or made up (``TemplateCaptioner.explain``; for REIC's reports see
``caption_truth.py``). As in the paper, pairs of captions are counted. *violations* are reported and
right about something, *false alarms* are reported and right about nothing. *captions* are all that
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
from .template_captioner import Told

Edit = MetaIC | ROME


@dataclass(frozen=True)
class Pair:
    """Two captions, of an image and of an edited copy. ``reported``: names that break a rule;
    ``right``: those of them about which a caption is really wrong.
    """

    sample: int
    reported: tuple[str, ...]
    right: tuple[str, ...]


def table_2(
    bench: Bench, frame: pd.DataFrame, steps: list[Step], same: Same, seed: int
) -> pd.DataFrame:
    """Return a row per method; ``frame`` and ``steps`` are REIC's (``verdicts``, ``scheme``)."""
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
    mine = frame[frame["relation"] == kind]
    told = mine[mine["reported"]].groupby("case")["real"].any()
    images = {step.sample: 1 + len(step.received.versions) for step in own}
    return {
        "method": f"REIC, {kind}",
        "eligible": len(images),
        "follow-ups": len(own),
        "captions": len(own) + sum(images.values()),
        "violations": int(told.sum()),
        "false alarms": int((~told).sum()),
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
    """Yield every follow-up that an edit can make of the scenes, judged."""
    for index in range(len(bench.dataset)):
        sample = bench.dataset.sample(index)
        source = bench.captioner.explain(sample.require_image())
        for severity in edit.severities:
            rng = generator(seed, f"caption rivals/{edit.name}/{sample.id}/{severity}")
            follow_up = edit.apply(sample, severity, rng)
            if NOT_ELIGIBLE in follow_up.details or follow_up.image is None:
                continue
            said = bench.captioner.explain(follow_up.image)
            reported = _reported(edit, oracle, sample, follow_up, severity, source, said)
            wrong = faults(source) | faults(said)
            right = tuple(name for name in reported if KINDS_OF_WORDS.get(name, name) in wrong)
            yield Pair(index, reported, right)


def _reported(
    edit: Edit,
    oracle: CaptionClasses,
    sample: Sample,
    follow_up: FollowUp,
    severity: int,
    source: Told,
    said: Told,
) -> tuple[str, ...]:
    question = Question(0, sample.id, edit.name, severity, CAPTION, 1)
    expected = oracle.expect(Premise(edit, follow_up, sample, question, source.caption))
    outcome = oracle.judge(question, said.caption, expected)
    objects = (outcome.details or {}).get("objects", ())
    return tuple(each["name"] for each in objects if each["rule"] is not None)


def faults(told: Told) -> set[str]:
    """Return the kinds about which a caption is wrong: left out, named as others, these others, and
    made up.
    """
    mistaken = {*told.misclassified, *told.misclassified.values()}
    return {*told.omitted, *mistaken, *told.fabricated}
