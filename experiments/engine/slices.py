"""Planted slices: are they found, what is found beside them, and what does certifying them take?

Three worlds of recorded answers. *digits*: scikit-learn's digits under four relations; sevens fail
where they are turned. *phantom*: endoscopy frames with polyps, under three lights; flat polyps of
5-10 mm fail under red light. *nothing*: the digits, all failing alike. Elsewhere six of a hundred
questions fail by chance, and under one relation half as many again, as in life. Audits certify the
overall label error and every relation, and look for three slices. Predictions are left out
(surrogate = false): an audit then takes some four seconds.

Prints a row per world, and after every ten audits what it comes to so far. *found*: audits in which
a slice shares at least half of what it or the planted one has; *false*: slices that fail no more
often than all questions do; *held*: slices whose interval held the true rate at every moment.
*found at* and *certified after*: median calls, the latter counted from where the slice was found.
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
"""Chances to fail, elsewhere and in the planted slice."""
HARDER = 1.5
"""The relation that is harder than the others fails so much more often."""
TOLD = 0.5
"""A slice with this share of what it or the planted one has in common with it is that one."""
DIGITS, FRAMES = 600, 600
TARGETS = ["overall", "relations"]
TELL = 10
"""Audits after which the figures so far are printed."""


@dataclass(frozen=True)
class World:
    """A space, a model, and, by question number, every ``loss`` and what is ``planted`` (n,)."""

    space: QuestionSpace
    model: Recorded
    loss: Floats
    planted: Bools


@dataclass(frozen=True)
class Slice:
    """One that an audit found: the draw, its true rate over that of all, how much it shares with
    the planted one, calls until it was certified (None: it was not), whether its interval held."""

    since: int
    lift: float
    shared: float
    calls: int | None
    held: bool


def digits(seed: int, *, plant: bool = True) -> World:
    """Sevens fail where they are turned, if that is planted."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    images, shown = load_digits(return_X_y=True)
    chosen = rng.choice(len(images), DIGITS, replace=False)
    metadata = pd.DataFrame(
        {
            "digit": shown[chosen],
            "writer": rng.choice([f"w{k}" for k in range(8)], DIGITS),
            "ink": rng.choice(["pale", "medium", "dark"], DIGITS),
        }
    )
    names = ["identity", "turned", "blurred", "noisy"]
    bad = np.outer(metadata["digit"] == 7, [name == "turned" for name in names])
    return _world(metadata, names, bad & plant, rng, harder=plant, features=images[chosen])


def phantoms(seed: int) -> World:
    """Flat polyps of 5-10 mm fail under red light."""
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
    """``planted`` samples x relations."""
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
    """The slices that one audit found."""
    journal = MemoryJournal()
    chosen: dict[str, object] = {"discover": 3, "surrogate": False, "targets": TARGETS} | options
    Audit(
        world.space,
        world.model,
        half_width=half_width,
        budget=budget,
        seed=seed,
        journal=journal,
        **chosen,  # type: ignore[arg-type]
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


def _judged(world: World, found: SliceFacts, track: Track, certificate: CertificateFacts) -> Slice:
    target = target_of(OfSlice(found.name), found.masks)
    inside = members(world.space, [target], np.arange(len(world.loss)))[0]
    rate = float(world.loss[inside].mean())
    shared = (inside & world.planted).sum() / (inside | world.planted).sum()
    lower, upper = track.lower[found.since :], track.upper[found.since :]
    narrow = np.flatnonzero((upper - lower) / 2 <= certificate.aim)
    calls = int(narrow[0]) if len(narrow) else None
    held = bool(((lower <= rate + 1e-9) & (rate - 1e-9 <= upper)).all())
    return Slice(found.since, rate / float(world.loss.mean()), float(shared), calls, held)


def row(name: str, audits: Sequence[Sequence[Slice]]) -> dict[str, object]:
    """One line of the table."""
    every = [one for found in audits for one in found]
    hits = [max(found, key=lambda one: one.shared) for found in audits if found]
    hits = [one for one in hits if one.shared >= TOLD]
    done = [one.calls for one in hits if one.calls is not None]
    return {
        "world": name,
        "found": f"{len(hits)} of {len(audits)}",
        "slices in all": len(every),
        "false": sum(one.lift <= 1 for one in every),
        "audits with a false one": sum(any(o.lift <= 1 for o in found) for found in audits),
        "held": f"{sum(one.held for one in every)} of {len(every)}",
        "found at": _median([one.since for one in hits]),
        "certified": f"{len(done)} of {len(hits)}",
        "certified after": _median(done),
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
            if len(audits) % TELL == 0:
                show(row(name, audits))
        rows.append(row(name, audits))
    save_table(rows, chosen.out / "slices.csv")


if __name__ == "__main__":
    main()
