"""``avtt audit``: from a SPEC.toml to a certificate and a report."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..audit import Audit
from ..cohort import MIN_MODELS
from ..config import Spec
from ..config.building import build_audit
from ..engine.audit_key import fresh_seed
from ..errors import InputError
from ..journal import check_undamaged
from ..journal.files import JOURNAL
from ..results.report.frame import check_way
from ..results.report.run_files import BASELINE_NAMES, BASELINES, Baseline
from ..results.run import Run
from ..types import JsonObject
from ..utils.files import write_text
from .options import names
from .plan import estimate
from .printing import filled, plain_console
from .progress import Live
from .run_folder import begin, named, rewrite, run_and_report
from .signals import Interrupted, interruptible
from .spec_changes import not_with_explore, read

ENDS, CERTIFIES, ASKS = "When to end", "What to certify", "How to ask"
"""Headings of the options in ``avtt audit --help``."""


def audit(  # noqa: PLR0913 - a command's options
    spec: Path | None = None,
    *,
    demo: bool = False,
    budget: int | None = None,
    max_cost: float | None = None,
    half_width: float | None = None,
    gate: list[str] | None = None,
    targets: str | None = None,
    explore: bool = False,
    require_certified: bool = False,
    strategy: str | None = None,
    after: list[Path] | None = None,
    seed: int | None = None,
    sample: bool = False,
    set_: list[str] | None = None,
    dry_run: bool = False,
    out: Path = Path("runs/audit"),
    plotly: str = "inline",
    open_: bool = False,
    json_: bool = False,
) -> None:
    """Run an audit and write a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run.
    --dry-run imports no model or proxy, only code of the dataset, the relations,
    the oracle and the strategy.

    --half-width, --gate and --set certify.at_most=0.1 set goals: the audit ends
    when they are reached, or at a limit, such as --budget. --set sets any other
    field of SPEC.toml.

    Example: avtt audit SPEC.toml --half-width 0.05 --budget 500 --out runs/first

    Args:
        spec (SPEC.toml): What to audit: images, model, questions. 'avtt init DIR' writes one.
        demo: Audit the bundled model on bundled images instead.
        dry_run: Estimate calls and cost as 'avtt plan' does; ask nothing.

    When to end:
        budget (CALLS): {audit.budget}
        max_cost (MONEY): {audit.max_cost}
        half_width (SHARE): {certify.half_width}
        gate (RULE): {stop.gate}

    What to certify:
        targets (NAME,NAME): {certify.targets}
        explore: Certify nothing: look for what is uncertain, as the paper does.
        require_certified: For scripts: exit with 3 if a target stays open or is invalidated.

    How to ask:
        strategy (NAME): {audit.strategy}
        after (DIR): Run folder of an audit of an earlier version of the model. Its failures show
            where to look, with new draws. Repeat it for a cohort of three or more other models.
        seed (NUMBER): {audit.seed}
        sample: Draw questions even where asking all of them takes less time.
    """
    flags = {
        "audit.budget": budget,
        "audit.max_cost": max_cost,
        "certify.half_width": half_width,
        "stop.gate": gate or None,
        "certify.targets": names(targets),
        "audit.strategy": strategy,
        "audit.seed": seed,
    }
    begun: Audit | None = None
    with interruptible(out, begun=lambda: begun is not None):
        if explore and (require_certified or after):
            raise not_with_explore("--require-certified" if require_certified else "--after")
        prior, taken = _earlier(after) if after else ({}, {})
        chosen, base = read(spec, demo, {**flags, **prior}, set_, explore=explore)
        if after:
            chosen = _seeded(chosen, seed, taken)
        if dry_run:
            return estimate(chosen, base, json_)
        check_way(plotly)
        words = named(spec, set_, names(targets))
        begun = begin(chosen, base, out, words, sample=sample or demo)
        options: Any = {"open_it": open_, "plotly": plotly}
        result = run_and_report(begun, out, json_, require_certified, **options)
        reached = chosen.certify.half_width is not None and bool(result.targets["certified"].all())
        if demo and not json_ and reached and result.calls:
            compare_with_random(chosen, base, out, plotly, begun)


# -- earlier audits: of an earlier version of the model, or of a cohort of other models ------------


def _earlier(folders: Sequence[Path]) -> tuple[JsonObject, dict[int, Path]]:
    """Return the fields of a spec that earlier audits set, and their folders by seed.

    One is the prior journal, several are the cohort. Raise InputError for two of them, JournalError
    for a folder without an audit, and for one whose rows were changed.
    """
    if 1 < len(folders) < MIN_MODELS:
        raise InputError(
            f"--after: expected one run of an earlier version, or runs of {MIN_MODELS} or more "
            f"other models, got {len(folders)}, which do not show how far models differ"
        )
    seeds = {}
    for folder in folders:
        with Run.opened(folder) as run:
            check_undamaged(run.journal)
            seeds[run.facts.settings.seed] = folder
    paths = [os.path.abspath(folder) for folder in folders]
    if len(paths) == 1:
        return {"certify.prior_journal": os.path.join(paths[0], JOURNAL)}, seeds
    return {"certify.cohort": paths}, seeds


def _seeded(spec: Spec, seed: int | None, taken: Mapping[int, Path]) -> Spec:
    """Return the spec with a seed that no earlier audit had.

    Args:
        spec: The spec.
        seed: The seed of the command line, or None.
        taken: The folders of earlier audits by their seeds.

    Raises:
        InputError: An earlier audit had ``seed``, or the spec certifies nothing.
    """
    if not spec.certify.certifies:
        raise InputError(
            "--after: expected an audit that certifies, which predictions serve, got one that "
            "explores; give --half-width"
        )
    if spec.audit.seed not in taken:
        return spec
    if seed is not None:
        raise InputError(
            f"--seed: expected another one than that of {taken[seed]}, {seed}, so that the "
            "draws are new; leave it out for a fresh one"
        )
    audit = spec.audit.model_copy(update={"seed": fresh_seed()})
    return spec.model_copy(update={"audit": audit})


# -- the demo: the same audit, run twice more, with questions drawn at random ------------------

RANDOM: dict[str, Any] = {"strategy": "random", "exploration": 1e-6, "stop": None, "goal": None}
"""An exploration has to be above 0; this one changes no draw."""
UNIFORM: dict[str, tuple[int, dict[str, Any]]] = {
    "predicted": (2, {"candidates": 512}),
    "uniform": (10, {"surrogate": False}),
}
"""Baselines of ``BASELINE_NAMES``: each one's most calls, as a multiple of this audit's, and its
options. Predictions take nearly all the time, so the multiple is low with them. A draw without
weights needs few candidates: only the prediction of the rest depends on them."""


def compare_with_random(spec: Spec, base: Path, out: Path, plotly: str, first: Audit) -> None:
    """Audit the demo to the same half-width with questions drawn at random, print how many calls
    that takes, and write the report again with it. ``first``: the audit to compare with.

    The demo's model costs nothing. For a paid model, ``avtt compare`` on recorded answers simulates
    this.

    Raises:
        Interrupted: The comparison is cut short; the audit is complete then.
    """
    calls = json.loads((out / "result.json").read_text())["calls"]
    console = plain_console()
    console.print(
        "the report is complete; to compare, the audit is repeated with random draws, with the "
        "same predictions, then without any (Ctrl-C skips that)"
    )
    baselines: dict[str, Baseline] = {}
    try:
        for kind, (most, options) in UNIFORM.items():
            given = {**RANDOM, **options, "budget": most * calls, "space": first.space}
            begun = build_audit(spec, base, **given)
            with begun.without_beliefs() as audit, Live(audit, what=BASELINE_NAMES[kind]) as live:
                result = audit.run(live.update)
            certified = bool(result.targets["certified"].all())
            baselines[kind] = Baseline(calls=result.calls, certified=certified)
    except KeyboardInterrupt as interrupt:
        message = f"the comparison is left out; the audit is complete: {out / 'report.html'}"
        raise Interrupted.by(interrupt, message) from None
    facts = {kind: one.model_dump() for kind, one in baselines.items()}
    write_text(out / BASELINES, json.dumps(facts, indent=1) + "\n")
    words: Any = {"calls": calls, "baselines": baselines, "names": BASELINE_NAMES}
    console.print(filled("compared_with_random", report=rewrite(out, plotly), **words))
