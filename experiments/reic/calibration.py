"""Choose the least similarity of equal words, and rate comparisons of words, within seconds.

    python -m adaptive_vtt.experiments.reic.calibration --wordnet /folder/of/wordnet

REIC does not state the similarity from which on two words are the same object. The thresholds here
have the highest F1 on one half of pairs.tsv. These pairs of words from the vocabulary of COCO and
VOC are our own, and were judged before any was compared. The table has precision, recall and F1 on
the other half, for each comparison that is installed. ``--wordnet`` is the folder of WordNet
(default: $WNSEARCHDIR), and ``--vectors`` a file of word vectors, GloVe or .vec.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding, Literal, Matcher, Thesaurus

from ..program import Row, options, save_table, show
from .embeddings import EmbeddingSame, MiniLM, WordVectors
from .wordnet import WordNetSame


@dataclass(frozen=True)
class Pair:
    """Two phrases, whether they mean the same object, and whether the pair is held out."""

    one: str
    other: str
    same: bool
    held_out: bool


def pairs() -> list[Pair]:
    lines = Path(__file__).with_name("pairs.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [Pair(one, other, yes == "yes", half == "held out") for half, yes, one, other in rows]


def calibrate(scores: npt.ArrayLike, same: npt.ArrayLike) -> float:
    """Return the threshold with the highest F1, where score >= threshold counts as the same.

    It lies half way between two scores. The highest of equally good thresholds is chosen.

    Args:
        scores: Scores, (n,); infinite if another comparison counts the pair as the same, minus
            infinite without a score.
        same: Whether the pair is the same, (n,).

    Raises:
        InputError: A score is NaN, no pair is the same, or all finite scores are equal.
    """
    values, right = np.asarray(scores, float), np.asarray(same, bool)
    levels = np.unique(values[np.isfinite(values)])
    if values.shape != right.shape or np.isnan(values).any():
        raise InputError(
            f"calibration: expected a score for each of {right.size} pairs, and none NaN, "
            f"got {values.size - int(np.isnan(values).sum())}"
        )
    if not right.any() or len(levels) < 2:
        raise InputError(
            "calibration: expected pairs that are the same and two different scores, got "
            f"{int(right.sum())} pairs and {len(levels)} scores"
        )
    between = ((levels[1:] + levels[:-1]) / 2)[::-1]
    taken = values >= between[:, None]
    f1 = 2 * (taken & right).sum(axis=1) / (taken.sum(axis=1) + right.sum())
    return float(between[f1.argmax()])


def quality(matcher: Matcher, judged: Sequence[Pair]) -> tuple[float, float]:
    """Return precision (1 if nothing counts as the same) and recall."""
    taken = np.array([matcher(pair.one, pair.other) for pair in judged])
    right = np.array([pair.same for pair in judged])
    both = float((taken & right).sum())
    return both / taken.sum() if taken.any() else 1.0, both / right.sum()


def threshold(matcher: EmbeddingSame, others: Sequence[Matcher], judged: Sequence[Pair]) -> float:
    """Return the threshold for pairs that the other matchers do not count as the same."""
    rest = AnyOf(others)
    scores = [
        np.inf if rest(p.one, p.other) else matcher.similarity(p.one, p.other) for p in judged
    ]
    return calibrate(scores, [p.same for p in judged])


Matchers = dict[str, Matcher | str]
"""Name -> a matcher, or why it is left out."""


def matchers(wordnet: Path | None, vectors: Path | None, judged: Sequence[Pair]) -> Matchers:
    """Return all matchers that are installed, with thresholds chosen on ``judged``, by name."""
    by_name: Matchers = {
        "equal words": Literal(),
        "number": Folding(heads=False),
        "number and last words": Folding(),
    }
    usual: list[Matcher] = [Folding(), Thesaurus()]
    by_name["last words, everyday list"] = AnyOf(usual)
    try:
        by_name["WordNet"] = WordNetSame(wordnet)
        usual.append(WordNetSame(wordnet))
        by_name["last words, everyday list, WordNet"] = AnyOf(usual)
    except InputError as error:
        by_name["WordNet"] = str(error)
    for name, make in _vectors(vectors).items():
        try:
            matcher = make()
        except InputError as error:
            by_name[name] = str(error)
            continue
        for others in ([], usual):
            least = threshold(matcher, others, judged)
            label = "all of these, " if others else ""
            calibrated = EmbeddingSame(matcher.vectors, least)
            by_name[f"{label}{name} >= {least:.2f}"] = AnyOf([*others, calibrated])
    return by_name


def _vectors(file: Path | None) -> dict[str, Callable[[], EmbeddingSame]]:
    makers: dict[str, Callable[[], EmbeddingSame]] = {
        "MiniLM": lambda: EmbeddingSame(MiniLM(), 1.0)
    }
    if file:
        makers[file.name] = lambda: EmbeddingSame(WordVectors(file), 1.0)
    return makers


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, wordnet=Path, vectors=Path)
    known = pairs()
    held_out = [pair for pair in known if pair.held_out]
    judged = [pair for pair in known if not pair.held_out]
    show(f"thresholds are chosen on {len(judged)} pairs; scores are of {len(held_out)} others")
    rows: list[Row] = []
    for name, matcher in matchers(chosen.wordnet, chosen.vectors, judged).items():
        if isinstance(matcher, str):
            show(f"left out: {matcher}")
            continue
        precision, recall = quality(matcher, held_out)
        f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
        rows.append({"comparison": name, "precision": precision, "recall": recall, "F1": f1})
    save_table(pd.DataFrame(rows).round(3), chosen.out / "calibration.csv")


if __name__ == "__main__":
    main()
