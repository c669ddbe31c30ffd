"""Measure the discovery and certification of planted slices.

    python -m adaptive_vtt.experiments.engine.slices --seeds 100

There are three worlds of recorded answers. *digits*: scikit-learn's digits under four relations;
sevens fail where they are turned. *phantom*: endoscopy frames with polyps under three lights; flat
polyps of 5-10 mm fail under red light. *nothing*: the digits without a planted slice. All other
questions fail by chance, six in a hundred, and half as often again under one relation. Audits
certify the overall label error and every relation, and look for three slices. They predict nothing
(surrogate = false), so an audit takes some four seconds.

Prints a row per world, and the figures so far after every ten audits. *found*: audits in which the
intersection of a slice with the planted one is at least half of their union; *false*: slices that
fail no more often than all questions; *held*: slices whose interval held the true rate at every
moment. *found at* and *certified after*: median calls, the latter after the discovery.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.targets import members, target_of
from adaptive_vtt.certify.tracks import Track, tracks
from adaptive_vtt.datasets import from_table
from adaptive_vtt.families import OfSlice
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import CertificateFacts, SliceFacts, read_facts
from adaptive_vtt.models import Recorded
from adaptive_vtt.types import Bools, Floats

from ..medtest.phantoms import frames as phantom_frames
from ..program import options, save_table, show
from .digits import CONCEPT, RecordedRelation

ERROR, PLANTED = 0.06, 0.6
"""Failure rates of other questions, and of the planted slice."""
HARDER = 1.5
"""Factor of the failure rate under the hardest relation."""
SAME = 0.5
"""Least intersection over union at which a slice counts as the planted one."""
DIGITS, FRAMES = 600, 600
TARGETS = ["overall", "relations"]
PRINTED_EVERY = 10
"""Number of audits after which the figures so far are printed."""


@dataclass(frozen=True)
class World:
    """A space, a model, the ``loss`` (n,) of each question, and which are ``planted`` (n,)."""

    space: QuestionSpace
    model: Recorded
    loss: Floats
    planted: Bools


@dataclass(frozen=True)
class Slice:
    """A slice that an audit discovered.

    Attributes:
        since: Draw of the discovery.
        lift: Its true failure rate over that of all questions.
        shared: Intersection over union with the planted slice.
        calls: Calls until it was certified; None: it was not.
        held: True if its interval held the true rate at every moment.
    """

    since: int
    lift: float
    shared: float
    calls: int | None
    held: bool


def digits(seed: int, *, plant: bool = True) -> World:
    """Return the world of digits; with ``plant``, sevens fail where they are turned."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    images, digit = load_digits(return_X_y=True)
    chosen = rng.choice(len(images), DIGITS, replace=False)
    metadata = pd.DataFrame(
        {
            "digit": digit[chosen],
            "writer": rng.choice([f"w{k}" for k in range(8)], DIGITS),
            "ink": rng.choice(["pale", "medium", "dark"], DIGITS),
        }
    )
    names = ["identity", "turned", "blurred", "noisy"]
    bad = np.outer(metadata["digit"] == 7, [name == "turned" for name in names])
    return _world(metadata, names, bad & plant, rng, harder=plant, features=images[chosen])


def phantoms(seed: int) -> World:
    """Return the world of frames, in which flat polyps of 5-10 mm fail under red light."""
    rng = np.random.default_rng(seed)
    frames = phantom_frames(FRAMES, size=64, seed=seed, polyps="always")
    metadata = pd.DataFrame({c: frames.metadata_values(c) for c in frames.metadata_columns})
    names = ["white light", "red light", "blue light"]
    flat = (metadata["polyp_type"] == "iia") & (metadata["polyp_size"] == "5-10mm")
    bad = np.outer(flat, [name == "red light" for name in names])
    return _world(metadata, names, bad, rng, harder=True)


def _world(
    metadata: pd.DataFrame,
    names: Sequence[str],
    planted: Bools,
    rng: np.random.Generator,
    *,
    harder: bool,
    features: Floats | None = None,
) -> World:
    """Return a world whose questions ``planted`` (samples x relations) fail often."""
    samples, variants = planted.shape
    factor = np.ones(variants)
    factor[-1] = HARDER if harder else 1
    chance = np.where(planted, PLANTED, ERROR * factor)
    loss = (rng.random(planted.shape) < chance).astype(float)
    labels = pd.DataFrame({CONCEPT: np.ones(samples, int)})
    dataset = from_table(None, labels, metadata=metadata, features=features, name="planted")
    answers = pd.DataFrame(
        {
            "sample": np.repeat(np.arange(samples), variants).astype(str),
            "relation": list(names) * samples,
            "severity": 1,
            CONCEPT: 1 - loss.ravel(),
        }
    )
    space = QuestionSpace(dataset, [RecordedRelation(name, [1]) for name in names])
    return World(space, Recorded(answers, name="planted"), loss.ravel(), planted.ravel())


WORLDS: dict[str, Callable[[int], World]] = {
    "digits": digits,
    "phantom": phantoms,
    "nothing": partial(digits, plant=False),
}


def audited(
    world: World, seed: int, half_width: float, budget: int, **options: object
) -> list[Slice]:
    """Return the slices that one audit discovered."""
    journal = MemoryJournal()
    options = {"discover": 3, "surrogate": False, "targets": TARGETS} | options
    Audit(
        world.space,
        world.model,
        half_width=half_width,
        budget=budget,
        seed=seed,
        journal=journal,
        **options,  # type: ignore[arg-type]
    ).run()
    certificate = read_facts(journal.facts()).certificate
    if certificate is None or not certificate.slices:
        return []
    history = tracks(certificate, journal.draws(proposals=False), journal.calls())
    first = len(history) - len(certificate.slices)
    return [
        _judged(world, slice_, track, certificate)
        for slice_, track in zip(certificate.slices, history[first:], strict=True)
    ]


def _judged(
    world: World, discovered: SliceFacts, track: Track, certificate: CertificateFacts
) -> Slice:
    """Compare a discovered slice with the planted one and with the truth."""
    target = target_of(OfSlice(discovered.name), discovered.masks)
    inside = members(world.space, [target], np.arange(len(world.loss)))[0]
    rate = float(world.loss[inside].mean())
    shared = (inside & world.planted).sum() / (inside | world.planted).sum()
    since = discovered.since
    lower, upper = track.lower[since:], track.upper[since:]
    narrow = np.flatnonzero((upper - lower) / 2 <= certificate.aim)
    calls = int(narrow[0]) if len(narrow) else None
    held = bool(((lower <= rate + 1e-9) & (rate - 1e-9 <= upper)).all())
    return Slice(since, rate / float(world.loss.mean()), float(shared), calls, held)


def row(name: str, audits: Sequence[Sequence[Slice]]) -> dict[str, object]:
    """Return the row of a world, given the slices of each audit."""
    slices = [slice_ for of_audit in audits for slice_ in of_audit]
    nearest = [max(of_audit, key=lambda s: s.shared) for of_audit in audits if of_audit]
    hits = [slice_ for slice_ in nearest if slice_.shared >= SAME]
    certified = [slice_.calls for slice_ in hits if slice_.calls is not None]
    return {
        "world": name,
        "found": f"{len(hits)} of {len(audits)}",
        "slices in all": len(slices),
        "false": sum(slice_.lift <= 1 for slice_ in slices),
        "audits with a false one": sum(any(s.lift <= 1 for s in of_audit) for of_audit in audits),
        "held": f"{sum(slice_.held for slice_ in slices)} of {len(slices)}",
        "found at": _median([slice_.since for slice_ in hits]),
        "certified": f"{len(certified)} of {len(hits)}",
        "certified after": _median(certified),
    }


def _median(values: Sequence[int]) -> str:
    return f"{np.median(values):.0f}" if values else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 2},
        seeds=100,
        worlds=WORLDS,
        half_width=0.05,
        budget=900,
    )
    rows = []
    for name in chosen.worlds:
        audits: list[list[Slice]] = []
        for seed in range(chosen.seeds):
            audits.append(audited(WORLDS[name](seed), seed, chosen.half_width, chosen.budget))
            if len(audits) % PRINTED_EVERY == 0:
                show(row(name, audits))
        rows.append(row(name, audits))
    save_table(rows, chosen.out / "slices.csv")


if __name__ == "__main__":
    main()
