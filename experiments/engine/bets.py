"""Count the calls that three rules of the bets save, and the audits that miss under them.

    python -m adaptive_vtt.experiments.engine.bets [--quick] [--seeds 6] [--coverage 300]

- *theta*: if losses are predicted to be rare, most of a target's alpha decides the upper end of
  its interval (``certify.sequences``).
- *cap*: predictions of a bet are not moved if its room limits its size.
- *strata*: if a call answers all questions about an image, a draw chooses its relation first
  (``certify.strata``).

The engine's selector and certifier run on simulated losses with fixed predictions, so nothing is
learnt and an audit takes seconds. The first table has mean calls by task and rule, and differences
to no rule with their standard errors. The second counts, for each hostile cell, the audits that
missed at any moment. ``hostile`` runs some of these cells as whole audits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import expit
from scipy.stats import binom, sem

from adaptive_vtt import Pool
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.alpha import by_size
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.sequences import BETS
from adaptive_vtt.config import DEMO
from adaptive_vtt.config.building import build_space
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies.by_need import ByNeed
from adaptive_vtt.surrogates import Posterior
from adaptive_vtt.types import CallMode, Floats

from ..program import Row, in_processes, options, save_table

ROUNDING = 1e-9
"""Distance outside an interval at which the truth still counts as inside."""
LEVEL = 0.95
"""Confidence of all intervals."""


@dataclass(frozen=True)
class Material:
    """A space, its targets, and the loss and the prediction of each of its questions."""

    space: QuestionSpace
    targets: Sequence[str]
    answers: CallMode
    losses: Floats
    predicted: Floats
    half_width: float
    candidates: int = 4096


@dataclass(frozen=True)
class Bets:
    """Rules of an audit's bets, on or off."""

    theta: bool = True
    cap: bool = True
    strata: bool = True


RULES = {
    "neither": Bets(theta=False, cap=False, strata=False),
    "theta": Bets(cap=False, strata=False),
    "cap": Bets(theta=False, strata=False),
    "both": Bets(strata=False),
    "strata, too": Bets(),
}


class Replayed:
    """A surrogate with fixed predictions, which learns nothing."""

    def __init__(self, predicted: Floats) -> None:
        self._mean = torch.from_numpy(predicted)

    def observe(self, losses: Any) -> None:
        """Ignore the losses."""

    def posterior(self, candidates: Any) -> Posterior:
        mean = self._mean[candidates.question]
        return Posterior(mean, mean * (1 - mean))


def certifier_of(material: Material, bets: Bets) -> Certifier:
    """Return the certifier of the targets, with the rules of ``bets``."""
    space, answers = material.space, material.answers
    targets = named_targets(space, material.targets)
    plain = Certifier(space, targets, answers=answers)
    total = space.size if answers == "one" else space.images
    weights = by_size(plain.calls, plain.largest, total) if len(targets) > 1 else None
    constants = replace(BETS, tilts_capped=not bets.cap)
    rules = Rules(material.half_width, 1 - LEVEL, weights=weights, bets=constants)
    certifier = Certifier(space, targets, answers=answers, rules=rules)
    if bets.theta:
        questions = space.nth(np.arange(0, space.size, max(1, space.size // 20_000)))
        certifier.set_theta(questions, material.predicted[questions])
    return certifier


def selector_of(material: Material, bets: Bets, seed: int) -> Selector:
    """Return the selector that draws the audit's calls."""
    space, certifier = material.space, certifier_of(material, bets)
    losses: Any = Replayed(material.predicted)
    belief = Belief(space, seed=seed, losses=losses, certifier=certifier)
    selector = Selector(
        space,
        ByNeed(curiosity=0.0),
        seed=seed,
        exploration=0.2,
        candidates=material.candidates,
        answers=material.answers,
        belief=belief,
    )
    if not bets.strata:
        certifier.strata = None
    return selector


def played(material: Material, bets: Bets, seed: int, batch: int = 1) -> Iterator[Selector]:
    """Yield the selector before every draw; ``batch`` draws are made before their answers come."""
    selector, space = selector_of(material, bets, seed), material.space
    per_call = len(space.concepts) if material.answers == "all" else 1
    waiting: list[list[Observation]] = []
    while True:
        yield selector
        draw = selector.draw()
        if draw is None:
            return
        asked = draw.call * per_call + np.arange(per_call)
        asked = asked[space.eligible(asked)]
        selector.take(asked, draw.bet)
        columns = asked.tolist(), space.truth(asked).tolist(), material.losses[asked].tolist()
        waiting.append([Observation(*row) for row in zip(*columns, strict=True)])
        if len(waiting) == batch or not len(selector.pool):
            for outcomes in waiting:
                selector.learn(outcomes)
            waiting = []


def calls(material: Material, bets: Bets, seed: int, most: int) -> int:
    """Return the draws until all targets are certified, at most ``most``."""
    for selector in played(material, bets, seed):
        if selector.draws == most or selector.belief.certifying.certified.all():
            break
    return selector.draws


# -- calls saved --------------------------------------------------------------------------------


@cache
def demo_space() -> QuestionSpace:
    """Return the demo's space."""
    return build_space(DEMO, Path())


def simulated(targets: Sequence[str], half_width: float, seed: int, known: float) -> Material:
    """Return the demo's questions, one call per image, with losses as rare as its model's.

    The rates are some 1 % on original images and 2 to 40 % under the strongest changes. ``known``
    is the share of the variance of hidden logits that predictions explain.
    """
    space = demo_space()
    rng = np.random.default_rng([seed, 11])
    sample, variant, concept = space.parts(np.arange(space.total))
    relations = list(dict.fromkeys(v.relation.name for v in space.variants))
    slope = dict(zip(relations, rng.uniform(0.1, 0.7, len(relations)), strict=True))
    change = np.array([slope[v.relation.name] * v.severity for v in space.variants])
    side, image = rng.normal(0, 0.7, len(space.concepts)), rng.normal(0, 1.0, len(space.dataset))
    usual = -4.2 + change[variant] + side[concept] + image[sample]
    hidden = rng.normal(0, 1.6, len(usual))
    losses = (rng.random(len(usual)) < expit(usual + hidden)).astype(float)
    blurred = usual + known**0.5 * hidden + rng.normal(0, 0.3, len(usual))
    # shrunk towards 1/2 by the variance of a logit that predictions do not explain
    predicted = expit(blurred / np.sqrt(1 + 0.35 * 1.6**2 * (1 - known)))
    return Material(space, targets, "all", losses, predicted, half_width)


def single(rate: float, half_width: float, seed: int) -> Material:
    """Return 6,000 items and one target, with predictions that explain a third of the variance."""
    rng = np.random.default_rng([seed, 12])
    logit = np.log(rate / (1 - rate)) + rng.normal(0, 1.5, 6000)
    losses = (rng.random(6000) < expit(logit)).astype(float)
    return Material(Pool(6000), ["overall"], "one", losses, expit(logit), half_width, 1024)


TASKS: dict[str, tuple[Callable[[int], Material], int]] = {
    "relations": (lambda seed: simulated(["relations"], 0.08, seed, 0.5), 2000),
    "relations, predicted well": (lambda seed: simulated(["relations"], 0.08, seed, 0.95), 2000),
    "demo": (lambda seed: simulated(DEMO.certify.targets, 0.08, seed, 0.5), 3000),
    "one, 3 %": (lambda seed: single(0.03, 0.02, seed), 3000),
    "one, 30 %": (lambda seed: single(0.3, 0.05, seed), 3000),
    "one, 48 %": (lambda seed: single(0.48, 0.05, seed), 3000),
    "one, 90 %": (lambda seed: single(0.9, 0.04, seed), 3000),
}
"""Name of a task -> function that makes a seed's material, and the most draws."""


def calls_of(job: tuple[str, str, int]) -> int:
    """Return the calls of one audit: task, rule, seed."""
    task, rule, seed = job
    make, most = TASKS[task]
    return calls(make(seed), RULES[rule], seed, most)


def savings(tasks: Sequence[str], seeds: int, workers: int) -> pd.DataFrame:
    """Return mean calls per task and rule, and differences to "neither" with standard errors."""
    jobs = [(task, rule, seed) for task in tasks for rule in RULES for seed in range(seeds)]
    calls = dict(zip(jobs, in_processes(calls_of, jobs, workers), strict=True))
    rows = []
    for task in tasks:
        row: Row = {"task": task}
        first = np.array([calls[task, "neither", seed] for seed in range(seeds)], float)
        for rule in RULES:
            own = np.array([calls[task, rule, seed] for seed in range(seeds)], float)
            row[rule] = round(float(own.mean()), 1)
            if rule != "neither" and seeds > 1:
                row[f"{rule} less"] = f"{(first - own).mean():.1f} +- {sem(first - own):.1f}"
        rows.append(row)
    return pd.DataFrame(rows)


# -- how often intervals miss --------------------------------------------------------------------

ITEMS, DRAWS, CANDIDATES = 120, 50, 80
EXPLORATION = 0.2


@dataclass(frozen=True)
class Cell:
    """A small pool whose predictions work against its audit."""

    rate: float = 0.3
    predictions: str = "truth"
    """They are "truth", "lies" (certain and wrong), "half" (lies about every other item), "noise",
    or "usual" (the mean of all losses)."""
    items: int = ITEMS
    draws: int = DRAWS
    targets: tuple[str, ...] = ()
    """Targets of a cell whose calls answer all questions about an image; () for one question per
    call. Rates differ by relation, and draws choose a relation first."""
    candidates: int = 4096
    groups: bool = False
    batch: int = 1
    graded: bool = False


CELLS = {
    "lies": Cell(predictions="lies"),
    "rare, lies": Cell(rate=0.02, predictions="lies"),
    "rare, usual": Cell(rate=0.02, predictions="usual"),
    "half lost, lies": Cell(rate=0.5, predictions="lies"),
    "nearly all lost, lies": Cell(rate=0.97, predictions="lies"),
    "nearly all lost, usual": Cell(rate=0.97, predictions="usual"),
    "few questions, lies": Cell(items=16, draws=12, predictions="lies"),
    "groups, half lies": Cell(groups=True, predictions="half"),
    "groups, rare, lies": Cell(rate=0.05, groups=True, predictions="lies"),
    "graded, batches, noise": Cell(graded=True, batch=8, predictions="noise"),
    "few lost, usual, long": Cell(rate=0.1, items=600, draws=120, predictions="usual"),
    "to the end, half lies": Cell(predictions="half", groups=True, draws=ITEMS),
    "relations, lies": Cell(predictions="lies", targets=("relations",), draws=70),
    "relations, rare, usual": Cell(rate=0.1, predictions="usual", targets=("relations",), draws=70),
    "relations and all, lies": Cell(predictions="lies", targets=("overall", "relations"), draws=70),
    "relations, few candidates, half lies": Cell(
        predictions="half", targets=("overall", "relations"), draws=70, candidates=36
    ),
    "sides, lies": Cell(predictions="lies", targets=("overall", "relation-sides"), draws=70),
    "sides, twelve candidates, lies": Cell(  # some draws have no question of a side
        predictions="lies", targets=("overall", "relation-sides"), draws=70, candidates=36
    ),
    "sides, lies, to the end": Cell(
        predictions="lies", targets=("overall", "relation-sides"), items=8, draws=32
    ),
    "sides, half lies, batches": Cell(
        rate=0.6, predictions="half", targets=("overall", "relation-sides"), batch=8
    ),
}


def by_relation(cell: Cell, seed: int) -> Material:
    """Return a space of three questions per call, with a tenth of the truths unknown."""
    rng = np.random.default_rng([seed, 15])
    labels = rng.choice([0.0, 1.0, np.nan], (cell.items, 3), p=[0.6, 0.3, 0.1])
    labels[0], labels[1] = 0, 1
    relations = ["identity", "brightness_up", "gaussian_noise", "contrast_down"]
    names = [f"s{i}" for i in range(cell.items)]
    table = pd.DataFrame(labels, index=names, columns=list("abc"))
    space = QuestionSpace(from_table(None, table), relations, severities=[1])
    _, variant, concept = space.parts(np.arange(space.total))
    rates = np.clip(cell.rate * rng.choice([0.1, 0.5, 1.5, 3.0], (4, 3)), 0, 0.98)
    losses = (rng.random(space.total) < rates[variant, concept]).astype(float)
    predicted = predictions_of(cell, losses, rng)
    return Material(space, cell.targets, "all", losses, predicted, 0.1, cell.candidates)


def predictions_of(cell: Cell, losses: Floats, rng: np.random.Generator) -> Floats:
    """Return a cell's predictions of ``losses``, (n,)."""
    predictions = {
        "truth": losses,
        "lies": 1 - losses,
        "half": np.where(np.arange(len(losses)) % 2, losses, 1 - losses),
        "noise": rng.random(len(losses)),
        "usual": np.full(len(losses), losses.mean()),
    }
    return predictions[cell.predictions]


def hostile(cell: Cell, seed: int) -> Material:
    """Return a pool whose items fail at one of two rates, with the cell's predictions."""
    rng = np.random.default_rng([seed, 13])
    likely = np.clip(cell.rate * np.where(rng.random(cell.items) < 0.5, 1.5, 0.5), 0, 0.99)
    losses = (rng.random(cell.items) < likely).astype(float)
    if cell.graded:
        losses = np.clip(losses, 0.001, 0.999)
    predicted = predictions_of(cell, losses, rng)
    sizes = np.maximum((np.array([0.5, 0.33, 0.125]) * cell.items).astype(int), 1)
    group = np.repeat(np.arange(4), [*sizes, cell.items - sizes.sum()])
    table = pd.DataFrame({"g": group.astype(str)}) if cell.groups else None
    targets = ["overall", "group:g"] if cell.groups else ["overall"]
    return Material(Pool(cell.items, None, table), targets, "one", losses, predicted, 0.1)


def misses(job: tuple[str, int]) -> bool:
    """Return whether any interval of one hostile audit ever missed the truth."""
    name, seed = job
    cell = CELLS[name]
    if cell.targets:
        return misses_by_relation(cell, seed)
    material, rng = hostile(cell, seed), np.random.default_rng([seed, 14])
    certifier, losses = certifier_of(material, Bets()), material.losses
    inside = certifier.members(np.arange(cell.items))
    truth = inside @ losses / inside.sum(axis=1)
    unseen, waiting = np.arange(cell.items), []
    for number in range(cell.draws):
        candidates = np.sort(rng.permutation(unseen)[:CANDIDATES])
        count, f = len(candidates), material.predicted[candidates]
        weights = np.sqrt(f * (1 - f) + 0.01)
        q = (1 - EXPLORATION) * weights / weights.sum() + EXPLORATION / count
        place = int(rng.choice(count, p=q))
        bet = certifier.bet(inside[:, candidates], np.arange(count), f, q, place)
        waiting.append((bet, candidates[[place]]))
        unseen = unseen[unseen != candidates[place]]
        if len(waiting) < cell.batch and number + 1 < cell.draws:
            continue
        for waiting_bet, question in waiting:
            loss = losses[question]
            certifier.learn(waiting_bet, inside[:, question], loss, loss)
            if missed(certifier, truth):
                return True
        waiting = []
    return False


def missed(certifier: Certifier, truth: Floats) -> bool:
    """Return whether any interval misses the truth (K,) now."""
    lower, upper = certifier.sequences.lower, certifier.sequences.upper
    return bool(((lower > truth + ROUNDING) | (upper < truth - ROUNDING)).any())


def misses_by_relation(cell: Cell, seed: int) -> bool:
    """Return whether any interval ever missed in an audit whose draws choose a relation first."""
    material = by_relation(cell, seed)
    eligible = material.space.nth(np.arange(material.space.size))
    truth: Floats | None = None
    for selector in played(material, Bets(), seed, cell.batch):
        certifier = selector.belief.certifying
        if truth is None:
            assert certifier.strata is not None
            inside = certifier.members(eligible)
            truth = inside @ material.losses[eligible] / inside.sum(axis=1)
        if missed(certifier, truth):
            return True
        if selector.draws == cell.draws:
            break
    return False


def coverage(cells: Sequence[str], seeds: int, workers: int) -> pd.DataFrame:
    """Return a row per cell, and one of all; 5 % of the audits may miss."""
    rows: list[Row] = []
    for name in cells:
        results = in_processes(misses, [(name, seed) for seed in range(seeds)], workers)
        rows.append({"cell": name, "audits": seeds, "missed": sum(results)})
    rows.append({"cell": "all", "audits": seeds * len(cells)})
    rows[-1]["missed"] = sum(row["missed"] for row in rows[:-1])
    table = pd.DataFrame(rows)
    table["with .001 over"] = binom.ppf(0.999, table["audits"], 1 - LEVEL).astype(int)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"seeds": 2, "coverage": 4, "tasks": ["one, 30 %"], "cells": [next(iter(CELLS))]}
    chosen = options(
        __doc__,
        arguments,
        quick=quick,
        seeds=6,
        coverage=300,
        tasks=TASKS,
        cells=CELLS,
        workers=2,
    )
    if chosen.seeds:
        save_table(savings(chosen.tasks, chosen.seeds, chosen.workers), chosen.out / "bets.csv")
    if chosen.coverage:
        table = coverage(chosen.cells, chosen.coverage, chosen.workers)
        save_table(table, chosen.out / "bets-coverage.csv")


if __name__ == "__main__":
    main()
