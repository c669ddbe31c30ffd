"""Choose the similarity from which on two words are the same, and rate the ways to compare words.

REIC does not state from which similarity on two words are the same object. The thresholds here have
the highest F1 on one half of pairs.tsv. These pairs of words from the vocabulary of COCO and VOC
are our own, and were judged before any was compared. The other half was held out::

    python -m adaptive_vtt.experiments.reic.calibration --wordnet /folder/of/wordnet

prints precision and recall on the held-out half, for each way that can be used here.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding, Literal, Matcher, Thesaurus

from .embeddings import EmbeddingSame, MiniLM, WordVectors
from .wordnet import WordNetSame


@dataclass(frozen=True)
class Pair:
    """Two phrases and whether they mean the same object; ``held_out``: not to calibrate by."""

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

    It is half way between two scores; of equally good thresholds it is the highest.

    Args:
        scores: Scores, (n,); infinite where another way counts the pair as the same, or has no
            score.
        same: Whether the pair is the same, (n,).

    Raises:
        InputError: No pair is the same, or fewer than two finite scores differ.
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


def threshold(way: EmbeddingSame, others: Sequence[Matcher], judged: Sequence[Pair]) -> float:
    """Return the threshold that `calibrate` chooses, from the pairs that no other way counts as the
    same.
    """
    rest = AnyOf(others)
    scores = [np.inf if rest(p.one, p.other) else way.similarity(p.one, p.other) for p in judged]
    return calibrate(scores, [p.same for p in judged])


Rows = dict[str, Matcher | str]
"""Name -> a way to compare, or why it is left out."""


def ways(wordnet: Path | None, vectors: Path | None, judged: Sequence[Pair]) -> Rows:
    """Return all ways that can be used, with thresholds chosen on ``judged``, by name."""
    rows: Rows = {
        "equal words": Literal(),
        "number": Folding(heads=False),
        "number and last words": Folding(),
    }
    beside: list[Matcher] = [Folding(), Thesaurus()]
    rows["last words, everyday list"] = AnyOf(beside)
    try:
        rows["WordNet"] = WordNetSame(wordnet)
        beside.append(WordNetSame(wordnet))
        rows["last words, everyday list, WordNet"] = AnyOf(beside)
    except InputError as error:
        rows["WordNet"] = str(error)
    for name, make in _vectors(vectors).items():
        try:
            way = make()
        except InputError as error:
            rows[name] = str(error)
            continue
        for others in ([], beside):
            least = threshold(way, others, judged)
            label = "all of these, " if others else ""
            rows[f"{label}{name} >= {least:.2f}"] = AnyOf(
                [*others, EmbeddingSame(way.vectors, least)]
            )
    return rows


def _vectors(file: Path | None) -> dict[str, Callable[[], EmbeddingSame]]:
    made: dict[str, Callable[[], EmbeddingSame]] = {"MiniLM": lambda: EmbeddingSame(MiniLM(), 1.0)}
    if file:
        made[file.name] = lambda: EmbeddingSame(WordVectors(file), 1.0)
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; see the module's docstring."""
    options = ArgumentParser(description="Precision and recall of ways to compare words.")
    options.add_argument("--wordnet", type=Path, help="its folder (default: $WNSEARCHDIR)")
    options.add_argument("--vectors", type=Path, help="a file of word vectors, GloVe or .vec")
    chosen = options.parse_args(arguments)
    known = pairs()
    held_out = [pair for pair in known if pair.held_out]
    judged = [pair for pair in known if not pair.held_out]
    print(f"{len(judged)} pairs to calibrate by, {len(held_out)} held out, of which:\n")
    print(f"{'way':<40} precision  recall     F1")
    for name, way in ways(chosen.wordnet, chosen.vectors, judged).items():
        if isinstance(way, str):
            print(f"{name:<40} left out: {way}")
            continue
        precision, recall = quality(way, held_out)
        f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
        print(f"{name:<40} {precision:9.3f} {recall:7.3f} {f1:6.3f}")


if __name__ == "__main__":
    main()
