"""Would the tests notice? Plants small faults in the core, one at a time, and runs its tests.

Each fault (`mutation_changes.py`) is planted in a copy of the repository, where the tests that
``TESTS`` names for the module run until the first of them fails. A fault that none of them
notices survives, and is printed with its line. A survivor that no test could notice, since the
program does the same, is listed in ``EQUIVALENT`` with the reason, and counts for nothing.

    python -m adaptive_vtt.experiments.mutation [--quick] [--per-module 8] [--only engine/law]
        [--jobs 2] [--seed 0] [--out bench]

Which faults of a module are tried follows from the seed; ``--per-module 0`` tries all of them
(some 3,400: hours). The tests run in a fork of a process that has imported the libraries
already. With ``--out``, everything is written as mutation.json. The exit code is 1 where the
tests fail without any fault.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.random_streams import generator

from .mutation_changes import Mutant, count, mutant

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = "tests/equivalent_mutants.tsv"
"""Module, line as it stands, change, and why no test can notice it."""
QUICK = 2
"""Mutants per module with ``--quick``."""
PATIENCE = 4.0
"""A mutant whose tests take this many times as long as without it, and 20 s, hangs."""
LIBRARIES = (
    "torch",
    "gpytorch",
    "botorch.acquisition",
    "scipy.stats",
    "pandas",
    "cv2",
    "httpx",
    "hypothesis",
    "pytest",
    "pydantic",
    "typer.testing",
    "plotly.io",
    "jinja2",
)
LEFT_BEHIND = (".git", ".venv*", "runs", "bench", "__pycache__", ".*_cache", ".hypothesis")

_AUDITS = ("ask_and_tell", "stopping", "mutants", "audit", "sources", "resuming")
_CERTIFIED = ("certify_figures", "verify_draws")
TESTS: dict[str, tuple[str, ...]] = {
    "certify/compared": ("versus", "versus_command"),
    "certify/comparison": ("versus", "versus_claims"),
    "certify/decisions": ("game",),
    "certify/forecast": ("planning",),
    "certify/further": ("further",),
    "certify/game": ("game", *_CERTIFIED),
    "certify/rules": ("game",),
    "certify/sequences": ("game", *_CERTIFIED),
    "certify/certifier": (*_CERTIFIED, "reasons"),
    "certify/strata": ("strata",),
    "certify/targets": ("certify_figures", "derived"),
    "certify/units": (*_CERTIFIED, "reasons"),
    "certify/verify_decisions": ("game", "verify_draws"),
    "certify/verify": ("certify_figures", "verify_draws", "journal_chain", "estimates"),
    "certify/verify_draws": ("verify_draws", "strata"),
    "certify/verify_prices": ("prices_trusted",),
    "certify/verify_slices": ("slices",),
    "certify/verify_strata": ("strata",),
    "certify/verify_versus": ("versus", "versus_claims"),
    "engine/assembly": ("algorithm1", "audit_settings", "audit", "surrogate_names", "self_taught"),
    "engine/audit_key": ("mutants", "shared_draws", "resuming"),
    "engine/audit_parts": (*_AUDITS, "resuming", "concurrency", "batches"),
    "engine/belief": (
        *("algorithm1", "mutants", "audit", "sources", "outcomes", "goals", "reasons"),
        "batches",
    ),
    "engine/budget": (
        "ask_and_tell",
        "mutants",
        "sources",
        "usage_counts",
        "concurrency",
        "judging",
    ),
    "engine/call_queue": ("ask_and_tell", "sources", "resuming", "concurrency"),
    "engine/canaries": ("drift",),
    "engine/candidates": ("space", "stopping", "audit", "batches"),
    "engine/carried": ("after", "shared_draws"),
    "engine/census": ("compare", "outcomes"),
    "engine/checkpoints": ("beliefs",),
    "engine/checks": ("audit_settings", "planning", "sources", "usage_counts"),
    "engine/blocks": ("adaptive_concurrency", "batches", "batch_rounds"),
    "engine/draw_order": ("ask_and_tell", "audit", "resuming", "concurrency", "batches"),
    "engine/earlier_answers": ("versus", "versus_costs", "versus_replay"),
    "engine/estimates": ("estimates",),
    "engine/failing": ("mutants", "usage_counts", "hostile_server", "hostile_bodies"),
    "engine/journaled_answers": ("rejudging",),
    "engine/flight": ("concurrency", "adaptive_concurrency"),
    "engine/journaled_ways": ("ways",),
    "engine/judge": ("mutants", "audit", "sources", "outcomes", "margins", "concurrency"),
    "engine/judging": ("judging", "judging_money", "judging_resumed"),
    "engine/law": ("law", "verify_draws"),
    "engine/lease": ("fleet_leases",),
    "engine/leasing": ("fleet_resumed", "fleet_leases"),
    "engine/options": ("audit_settings", "audit", "goals"),
    "engine/population": ("cohort", "cohort_prior"),
    "engine/prices": ("prices", "prices_trusted", "price_guesses"),
    "engine/proxies": ("audit_settings", "shared_draws", "drift", "self_taught"),
    "engine/renderings": ("renderings",),
    "engine/replay": ("versus_replay",),
    "engine/run_loop": (*_AUDITS, "concurrency", "workers"),
    "engine/selector": ("algorithm1", *_AUDITS, "verify_draws", "reasons", "batches"),
    "engine/sent_batches": ("batch_rounds",),
    "engine/settings": ("audit_settings", "resuming", "shared_draws", "strategy_names"),
    "engine/source_calls": ("versions", "mutants", "sources"),
    "engine/source_queue": ("versions", "sources", "drift"),
    "engine/tensors": ("algorithm1", "mutants"),
    "journal/answer_json": ("journal_chain", "sources", "outcomes", "journal"),
    "journal/belief_groups": ("beliefs", "belief_figures"),
    "journal/chain": ("journal_chain", "journal_writers"),
    "journal/cohort_facts": ("cohort",),
    "journal/endpoint_facts": ("ways", "batch_rounds"),
    "journal/facts": ("facts",),
    "journal/files": ("journal_writers", "run_folders", "runs"),
    "journal/halves": ("versus", "versus_attacked", "versus_costs"),
    "journal/in_memory": ("journal", "resuming"),
    "journal/locking": ("journal_writers", "journal", "runs"),
    "journal/migrations": ("journal_writers", "migrations"),
    "journal/old_facts": ("facts", "migrations", "strategy_names"),
    "journal/opening": ("journal_writers", "journal", "run_folders"),
    "journal/packed_law": ("law", "verify_draws", "hostile_files"),
    "journal/prior": ("shared_draws", "audit_settings"),
    "journal/protocol_facts": ("prompts", "result_file"),
    "journal/sqlite_step": ("journal_chain", "journal", "beliefs"),
    "journal/sqlite": ("mutants", "journal_chain", "journal_writers", "journal", "resuming"),
    "models/network/batches": ("batch_rounds", "openai_batch"),
    "models/network/concurrency": ("adaptive_concurrency",),
    "models/network/ways": ("ways",),
    "models/network/endpoint": ("endpoints", "mutants", "hostile_server", "hostile_bodies"),
}
"""The tests that a module's faults are shown to, the quickest first."""

Verdict = Literal["killed", "hung", "survived", "equivalent"]


class Tried(NamedTuple):
    """A mutant and what its tests made of it."""

    mutant: Mutant
    verdict: Verdict
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="plants faults in the core and runs its tests")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} faults per module")
    parser.add_argument("--per-module", type=int, default=8, help="faults per module; 0: all")
    parser.add_argument("--only", nargs="+", default=[""], help="modules that begin so")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seed", type=int, default=0, help="which faults are tried")
    parser.add_argument("--out", type=Path, help="folder for mutation.json")
    options = parser.parse_args(arguments)
    modules = [name for name in TESTS if name.startswith(tuple(options.only))]
    per_module = QUICK if options.quick else options.per_module
    chosen = [m for name in modules for m in sample(name, per_module, options.seed)]
    tried = run(chosen, options.jobs)
    table = [score(name, tried) for name in modules]
    print(f"\n{'module':28} mutants killed survived equivalent score")
    for row in [*table, total(table)]:
        print(
            "{module:28} {mutants:7} {killed:6} {survived:8} {equivalent:10} {score:5}".format(
                **row
            )
        )
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"seed": options.seed, "modules": table, "mutants": described(tried)})
        write_text(options.out / "mutation.json", text)


def sample(module: str, most: int, seed: int) -> list[Mutant]:
    """``most`` mutants of a module, or all where that is 0, in the order of their lines."""
    source = (ROOT / "adaptive_vtt" / f"{module}.py").read_text()
    numbers = generator(seed, f"mutants of {module}").permutation(count(source))
    return [mutant(module, source, int(n)) for n in sorted(numbers[: most or None])]


# -- what came of it ---------------------------------------------------------------------------


def score(module: str, tried: Sequence[Tried]) -> dict[str, Any]:
    """The counts of a module, and the share of its faults that were noticed."""
    of = [t.verdict for t in tried if t.mutant.module == module]
    equivalent, survived = of.count("equivalent"), of.count("survived")
    return _row(module, len(of) - equivalent, survived, equivalent)


def total(table: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sums = [sum(row[name] for row in table) for name in ("mutants", "survived", "equivalent")]
    return _row("all", *sums)


def _row(module: str, mutants: int, survived: int, equivalent: int) -> dict[str, Any]:
    killed = mutants - survived
    share = f"{killed / mutants:.0%}" if mutants else "-"
    return {
        "module": module,
        "mutants": mutants,
        "killed": killed,
        "survived": survived,
        "equivalent": equivalent,
        "score": share,
    }


def described(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    return [
        {
            "module": t.mutant.module,
            "line": t.mutant.line,
            "change": t.mutant.change,
            "verdict": t.verdict,
            "seconds": round(t.seconds, 1),
        }
        for t in tried
    ]


def equivalents() -> set[tuple[str, str, str]]:
    """Module, line and change of the mutants listed as equivalent."""
    rows = (ROOT / EQUIVALENT).read_text().splitlines()
    found = [row.split("\t") for row in rows if row and not row.startswith("#")]
    return {(module, line, change) for module, line, change, _ in found}


def _place(fault: Mutant) -> tuple[str, str, str]:
    lines = (ROOT / "adaptive_vtt" / f"{fault.module}.py").read_text().splitlines()
    return fault.module, lines[fault.line - 1].strip(), fault.change


# -- running the tests -------------------------------------------------------------------------


def run(mutants: Sequence[Mutant], jobs: int) -> list[Tried]:
    """Every mutant's verdict; prints each survivor as it is found."""
    known = equivalents()
    tried = [Tried(m, "equivalent", 0.0) for m in mutants if _place(m) in known]
    left = [m for m in mutants if _place(m) not in known]
    shares = [left[k::jobs] for k in range(jobs)]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for done in pool.imap_unordered(_run_share, shares):
            tried.extend(done)
    return sorted(tried, key=lambda t: (t.mutant.module, t.mutant.line, t.mutant.change))


def _run_share(mutants: Sequence[Mutant]) -> list[Tried]:
    """One worker's mutants, in a copy of the repository of its own."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(*LEFT_BEHIND)
        shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
        for name in LIBRARIES:
            importlib.import_module(name)
        return list(_verdicts(copy, mutants))


def _verdicts(copy: Path, mutants: Sequence[Mutant]) -> Iterator[Tried]:
    usual: dict[str, float] = {}
    for fault in mutants:
        files = [_file(name) for name in TESTS[fault.module]]
        for file in files:
            if file not in usual:
                usual[file] = _without_fault(copy, file)
        started = time.monotonic()
        with _planted(copy, fault):
            status = _tests(copy, files, timeout=20 + PATIENCE * sum(usual[file] for file in files))
        verdict: Verdict = "hung" if status is None else "killed" if status else "survived"
        print(f"{verdict:9} {fault.module}:{fault.line}: {fault.change}", flush=True)
        yield Tried(fault, verdict, time.monotonic() - started)


def _without_fault(copy: Path, file: str) -> float:
    """The seconds that a file of tests takes; ends everything where one of them fails."""
    started = time.monotonic()
    if _tests(copy, [file], timeout=600.0) != 0:
        sys.exit(f"{file}: expected its tests to pass without any fault, and they fail")
    return time.monotonic() - started


def _file(name: str) -> str:
    folder, _, last = name.rpartition("/")
    return f"tests/{folder}/{last}.py" if folder else f"tests/test_{name}.py"


class _planted:
    """The copy with a fault in place, while it lasts."""

    def __init__(self, copy: Path, fault: Mutant) -> None:
        self.path, self.text = copy / "adaptive_vtt" / f"{fault.module}.py", fault.text
        self.before = self.path.read_text()

    def __enter__(self) -> None:
        self._write(self.text)

    def __exit__(self, *_: object) -> None:
        self._write(self.before)

    def _write(self, text: str) -> None:
        """No compiled module of the text before may be taken for this one's."""
        self.path.write_text(text)
        for compiled in (self.path.parent / "__pycache__").glob(f"{self.path.stem}.*.pyc"):
            compiled.unlink()


def _tests(copy: Path, files: Sequence[str], *, timeout: float) -> int | None:
    """The exit status of pytest in a process of its own; None where it had to be ended."""
    child = os.fork()
    if child == 0:
        _pytest(copy, files)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _pytest(copy: Path, files: Sequence[str]) -> NoReturn:
    """Runs the copy's tests on the copy's ``adaptive_vtt``, imported anew; ends this process."""
    status = 3
    try:
        os.setsid()  # what the tests start ends with them
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        for name in [n for n in sys.modules if n.split(".")[0] == "adaptive_vtt"]:
            del sys.modules[name]
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        os.environ.update(PYTHONPATH=str(copy), OMP_NUM_THREADS="1")
        import pytest

        options = ["-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
        status = int(pytest.main([*options, *files]))
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
