"""Small audits of every strategy and oracle, and of every mode of asking, for the goldens.

Each takes a folder of its own and ends with a journal and a result. Parts come from where users
import them, but for judges, so that moving files in the package leaves this table alone. PAGES
names one audit for each kind of report.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import adaptive_vtt as avtt
from adaptive_vtt import QuestionSpace, Result, oracles
from adaptive_vtt.datasets import Dataset, from_table
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.journal import Journal, read_journal
from adaptive_vtt.models import Prompt, Recorded, Simulated
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.relations import reic
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers import judged
from tests.helpers.captioned import faulty
from tests.helpers.command_line import run
from tests.helpers.report_kinds import Bright

CHANGES = ("identity", "rotation", "gaussian_noise")
QUICK: dict[str, Any] = {"seed": 0, "budget": 20, "surrogate": False, "device": "cpu"}
CERTIFIED: dict[str, Any] = {"half_width": 0.1, "targets": ["overall", "relations"]}
JUDGED = oracles.MultipleChoice(judge=JudgeModel(judged.Reader(), check=0.2))
HEAVY = {"overall label error": 3}
SAMPLES = 120
HARD = np.random.default_rng(0).random(SAMPLES) < 0.3


class Ended(NamedTuple):
    """Journal and result of an audit that ended; ``verdict``: the table of a comparison."""

    journal: Journal
    result: Result
    verdict: pd.DataFrame | None = None


@cache
def binary() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(20, 3), CHANGES, severities=[1, 3])


@cache
def classes() -> Dataset:
    """Pictures of three classes, or grades, that exclude each other."""
    rng = np.random.default_rng(0)
    truth = np.eye(3, dtype=int)[rng.integers(0, 3, SAMPLES)]
    pictures = rng.integers(0, 256, (SAMPLES, 8, 8, 3), dtype=np.uint8)
    return from_table(pictures, pd.DataFrame(truth, columns=["low", "mid", "high"]))


def segmented(oracle: Any) -> QuestionSpace:
    frames = phantoms.frames(6, size=64, polyps="always", concepts=["polyp"])
    return QuestionSpace(frames, ["identity", "brightness_up", "defocus_blur"], oracle=oracle)


def captions(**options: Any) -> QuestionSpace:
    changes, oracle = reic.relations(follow_ups=2), oracles.ReducedCaptions(**options)
    return QuestionSpace(scenes(4, seed=7), changes, oracle=oracle)


@cache
def table() -> QuestionSpace:
    """Questions without pictures: "c" of samples that most models fail on, or few."""
    names = [f"s{k:03d}" for k in range(SAMPLES)]
    known = pd.DataFrame({"site": np.where(HARD, "north", "south"), "age": np.arange(SAMPLES) % 50})
    features = HARD[:, None] * 4.0 + np.random.default_rng(1).normal(0, 0.1, (SAMPLES, 1))
    labels = pd.DataFrame({"c": np.ones(SAMPLES, int)}, index=names)
    return QuestionSpace(from_table(None, labels, metadata=known, features=features))


def losses(version: int) -> pd.Series:
    wrong = np.random.default_rng(version).random(SAMPLES) < np.where(HARD, 0.85, 0.05)
    return pd.Series(wrong.astype(float), [f"s{k:03d}" for k in range(SAMPLES)])


COHORT = pd.DataFrame({f"m{k}": losses(k) for k in range(4)})


def recorded(version: int) -> Recorded:
    return Recorded(pd.DataFrame({"c": 1 - losses(version)}), name=f"version {version}")


def right(dataset: Dataset, share: float = 0.8, **options: Any) -> Simulated:
    made = Simulated(dataset, dict.fromkeys(dataset.concepts, share), **options)
    made.version = "1"  # a proxy without one gives every audit a key of its own
    return made


def pair() -> tuple[Simulated, Simulated]:
    data = binary().dataset
    return right(data, 0.6, name="old"), right(data, 0.9, seed=1, name="new")


class AtOnce(ScriptedModel):
    """Four calls on their way; each is answered as soon as it is sent."""

    in_flight = 4

    def submit(self, prompt: Prompt) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(self.ask([prompt])[0])
        return future


def asked(space: QuestionSpace, model: Any, **options: Any) -> Ended:
    """An audit run to its end by a clock that stands still."""
    audit = avtt.Audit(space, model, clock=lambda: 0.0, **{**QUICK, **options})
    return Ended(audit.journal, audit.run())


def certified(space: QuestionSpace, model: Any, **options: Any) -> Ended:
    return asked(space, model, **{**CERTIFIED, **options})


def of_binary(model: Any = None, **options: Any) -> Ended:
    return asked(binary(), model or right(binary().dataset, seed=1), **options)


def gp(strategy: str, **options: Any) -> Ended:
    return of_binary(strategy=strategy, surrogate=True, **{**CERTIFIED, "budget": 12, **options})


def resumed(folder: Path, **options: Any) -> Ended:
    path = folder / "journal.db"
    of_binary(journal=path, **{**options, "budget": 7}).journal.close()
    return of_binary(journal=path, **options)


def compared(a: Any, b: Any, space: QuestionSpace | None = None, **options: Any) -> Ended:
    options = {"targets": CERTIFIED["targets"], **QUICK, **options}
    verdict = (versus := avtt.Versus(space or binary(), a, b, **options)).run()
    return Ended(versus.audit.journal, verdict.result, verdict.targets)


def replayed(folder: Path) -> Ended:
    (old, new), path = pair(), folder / "journal.db"
    of_binary(old, journal=path, budget=10, **CERTIFIED).journal.close()
    return compared(old, new, journal_a=path, use="replay", margin=0.05)


def after(folder: Path) -> Ended:
    path = folder / "journal.db"
    certified(table(), recorded(0), journal=path).journal.close()
    return certified(table(), recorded(1), prior_journal=path, surrogate=True)


def rejudged(folder: Path) -> Ended:
    """Masks judged by one threshold, then by others, nothing asked."""
    before = certified(segmented(oracles.MaskDrop()), Bright(), keep_masks=True)
    other = segmented(oracles.MaskDrop("iou", (0.1, 0.3)))
    result = avtt.rejudge(before.journal, other, out=folder / "run")
    return Ended(read_journal(folder / "run/journal.db"), result)


def commanded(folder: Path, spec: str) -> Ended:
    """Run an audit of a SPEC.toml by the command line."""
    (folder / "SPEC.toml").write_text(spec)
    with redirect_stdout(StringIO()) as output, redirect_stderr(output):
        out = ["--out", str(folder / "run"), "--plotly", "cdn", "--set", "audit.device=cpu"]
        code = run("audit", str(folder / "SPEC.toml"), *out)
    assert code == 0, output.getvalue()
    return Ended(read_journal(folder / "run/journal.db"), avtt.read_result(folder / "run"))


PHANTOM = """
dataset.kind = "adaptive_vtt.experiments.medtest.phantoms:frames"
dataset.options = { count = 6, size = 64 }
model = { kind = "simulated", target = "biased" }
space = { relations = ["identity", "rotation"], severities = [1, 3] }
audit = { strategy = "neyman", budget = 12, seed = 3 }
certify = { half_width = 0.1, targets = ["group:frame"], where.early.preparation = [0, 1] }
"""
DETECTED = """
dataset = { kind = "adaptive_vtt.experiments.reic.drawn_scenes:scenes", options = { count = 3 } }
detector = { kind = "regions", most = 4 }
model = { kind = "adaptive_vtt.experiments.reic.template_captioner:TemplateCaptioner" }
space = { relations = ["reic"] }
oracle = { kind = "captions" }
audit = { strategy = "random", budget = 40, seed = 3 }
"""

AUDITS: dict[str, Callable[[Path], Ended]] = {
    "certify": lambda _: gp("certify", where={"few": {"relation": ["rotation"]}}),
    "certify-whole-calls": lambda _: of_binary(
        ScriptedModel(refuse=0.1), unanswered="both", repeat_probes=3, weights=HEAVY, **CERTIFIED
    ),
    "random-each-resumed": lambda folder: resumed(
        folder, strategy="random", guarantee="each", half_width=0.1, targets=["severities"], batch=4
    ),
    "stratified-decided": lambda _: of_binary(
        strategy="stratified", at_most=0.4, targets=["concepts"], confidence=0.8
    ),
    "unpredictability-explored": lambda _: of_binary(strategy="unpredictability"),
    "uncertainty-explored": lambda _: of_binary(strategy="uncertainty", form="variance"),
    "paper-explored": lambda _: of_binary(ScriptedModel(refuse=0.1), history="answer"),
    "expected-reduction-explored": lambda _: of_binary(strategy="expected-reduction"),
    "neyman-command": partial(commanded, spec=PHANTOM),
    "lure-in-flight": lambda _: gp("lure", model=AtOnce(answers="one")),
    "bald": lambda _: gp("bald", proxies={"cheap": right(binary().dataset, 0.7, seed=2)}),
    "nipv": lambda _: gp("nipv", targets=["relation-concepts"]),
    "k-centre": lambda _: certified(table(), recorded(2), strategy="k-centre"),
    "failure-search": lambda _: gp("failure-search", exploration=0.4),
    "reic-detector-command": partial(commanded, spec=DETECTED),
    "captions-certified": lambda _: certified(captions(occlusion=False), faulty()),
    "top-class-taught": lambda _: certified(
        QuestionSpace(classes(), CHANGES, oracle=oracles.TopClass()),
        right(classes(), answers="all"),
        **{"targets": ["misclassified", "concepts"], "surrogate": True, "budget": 12},
        self_taught=True,
    ),
    "ordinal": lambda _: certified(
        QuestionSpace(classes(), CHANGES, oracle=oracles.Ordinal()), right(classes(), answers="all")
    ),
    "consistency-batch": lambda _: certified(
        QuestionSpace(classes(), CHANGES, oracle=oracles.Consistency()), ScriptedModel(), batch=4
    ),
    "mask-consistency": lambda _: certified(segmented(oracles.MaskConsistency()), Bright()),
    "mask-drop-rejudged": rejudged,
    "choice-judged": lambda _: certified(judged.space(JUDGED), judged.Voluble(), max_cost=50.0),
    "free-words": lambda _: asked(judged.space(oracles.ContainsTruth()), judged.Voluble()),
    "versus-asked": lambda _: compared(*pair(), margin=0.02, surrogate=True),
    "versus-recorded": lambda _: compared(
        None, recorded(3), table(), recorded_a=pd.DataFrame({"c": 1 - losses(4)}), at_least=-0.1
    ),
    "versus-replayed": replayed,
    "cohort-slices": lambda _: certified(
        table(), recorded(9), cohort=avtt.Cohort.from_table(COHORT), discover=2, budget=100
    ),
    "after": after,
}
PAGES = {
    *("certify", "certify-whole-calls", "paper-explored", "neyman-command", "captions-certified"),
    *("top-class-taught", "ordinal", "mask-drop-rejudged", "choice-judged", "versus-asked"),
    *("versus-recorded", "cohort-slices"),
}
"""Audits whose report is kept."""
