"""``avtt retrain``: a model trained again on what it fails under, and compared with what it was."""

import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ..audit.census import MAX_CALLS, calls_of
from ..audit.retraining import CHANGED, by_relation, check_apart, halves, table_of
from ..audit.shortcut import misclassified_under
from ..config import Spec, parse_spec
from ..config.building import build_model, build_space
from ..config.datasets import read_dataset
from ..datasets import Dataset, as_dataset
from ..engine.audit_key import CONTENT
from ..engine.options import Filters
from ..errors import InputError, listed
from ..journal import read_journal
from ..journal.files import JOURNAL, Lock
from ..results.export.mix import weights_of, write_mix
from ..space import QuestionSpace
from ..types import IDENTITY, JsonObject
from ..utils.figures import percent
from ..utils.files import Table, hash_files, merged, write_text
from ..utils.random_streams import generator
from ..utils.tables import TABLES, write_tables
from . import versus
from .census import taken
from .options import Json, Open, arg, opt
from .run_folder import open_report
from .signals import interrupted_as
from .spec_changes import Set, read, settings

RECORD, MIX, VERSUS = "retrain.json", "mix", "versus"
"""What is in the folder."""
DATA, CHECKPOINT = "AVTT_DATA", "AVTT_CHECKPOINT"
"""The environment of the training command: the folder of the mix, and where to write."""
PLACE = "{checkpoint}"
PLAIN = ("kind", "name", "version")
"""Fields of [model] that name no file."""
AGAIN = "the same command goes on where this stopped"


def retrain(
    spec: Annotated[
        Path, arg("The model as it is, and the questions before and after.", "SPEC.toml")
    ],
    train: Annotated[
        str,
        opt(
            "Your training, run by the shell: it reads the folder $AVTT_DATA (labels.csv, "
            "images/, masks/), and writes the new model to $AVTT_CHECKPOINT, a file or a folder.",
            "COMMAND",
        ),
    ],
    data: Annotated[
        Path | None,
        opt(
            "What to train on: images and labels that 'avtt init' recognises, or a TOML with "
            "a \\[dataset]. Default: one half of the spec's images, and the other half is asked "
            "about.",
            "PATH",
        ),
    ] = None,
    by: Annotated[
        Path | None,
        opt(
            "Relations in proportion to how often the model failed under them in this audit. "
            "Default: equal shares.",
            "RUN",
        ),
    ] = None,
    new: Annotated[
        list[str] | None,
        opt(
            "How \\[model] names the new model, such as model.path={checkpoint} or "
            "model.target=new.py:predict; again for more. Default: the one file that \\[model] "
            "names is replaced.",
            "FIELD=VALUE",
        ),
    ] = None,
    margin: Annotated[
        float,
        opt(
            "A difference of error rates that does not matter; 0.02 is 2 percentage points.",
            "SHARE",
        ),
    ] = 0.02,
    budget: Annotated[
        int | None, opt("Calls of both models in the comparison, at most.", "CALLS")
    ] = None,
    seed: Annotated[
        int | None, opt("Same seed, same mix, same comparison. Default: new.", "NUMBER")
    ] = None,
    certified_only: Annotated[
        bool,
        opt(
            "Leave out the exact figures before and after, for which everything is asked.",
            flags="--certified-only",
        ),
    ] = False,
    sets: Set = None,
    out: Annotated[Path, opt("Folder for mix/, the checkpoint, versus/ and tables/.")] = Path(
        "runs/retrained"
    ),
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Train a model on changed images by your own command, and certify what that gained.

    Makes a training set of images as they are and as many under the spec's
    relations, runs COMMAND on it, asks the old and the new model the same drawn
    questions, and writes MedTest's and MedMNIST-C's tables of before and after.
    The same command goes on where it was interrupted: nothing is made, trained
    or asked twice.

    Example: avtt retrain SPEC.toml --train 'python train.py' --by runs/first
    """
    old, base = read(spec, False, {"audit.budget": budget, "audit.seed": seed}, sets)
    with interrupted_as(lambda: f"interrupted; {AGAIN}"), ExitStack() as held:
        work = Retraining.begin(old, base, out, train, data, by, new)
        held.enter_context(Lock(out / RECORD))
        old = work.spec
        images = work.mix()
        file = work.trained(train, quiet=as_json)
        again = parse_spec(renewed(old.model_dump(), base, file, new), "--new")
        both = [] if certified_only else [work.figures(s, as_json) for s in (old, again)]
        told = work.compared(again, both, margin, as_json)
    if as_json:
        typer.echo(json.dumps({"mix": images, "checkpoint": str(file), **told}, indent=1))
    else:
        typer.echo(f"{_gain(told['table'])}tables: {out / TABLES}; new model: {file}")
    if open_it:
        open_report(out / VERSUS / "report.html")


@dataclass(frozen=True)
class Retraining:
    """What stands in ``out``, or is to: the spec of the old model, the images trained on under the
    relations that change them, and the questions asked afterwards."""

    spec: Spec
    base: Path
    out: Path
    seed: int
    weights: dict[str, float] | None
    checkpoint: Path
    training: QuestionSpace
    tested: QuestionSpace

    @classmethod
    def begin(
        cls,
        spec: Spec,
        base: Path,
        out: Path,
        train: str,
        data: Path | None,
        by: Path | None,
        new: list[str] | None,
    ) -> "Retraining":
        """Raises InputError where another retraining stands in ``out``, and for whatever would be
        found wrong after the training."""
        record = out / RECORD
        kept = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        seed = spec.audit.seed
        if seed is None:
            seed = kept.get("seed", secrets.randbits(31))
        spec = spec.model_copy(update={"audit": spec.audit.model_copy(update={"seed": seed})})
        table = spec.model_dump()
        ending = "" if new else _only_file(table["model"], base).suffix
        file = (out / f"checkpoint{ending}").absolute()
        parse_spec(renewed(table, base, file, new), "--new")
        images = spec.dataset.build(base)
        training, tested = halves(images, seed) if data is None else (_read(data), images)
        if data is not None:
            check_apart(training, tested)
        asked = build_space(spec, base, tested)
        names = dict.fromkeys(v.relation.name for v in asked.variants)
        changing = [name for name in names if name != IDENTITY]
        if not changing:
            raise InputError("retrain: expected a relation beside identity in [space], found none")
        weights = None
        if by is not None:
            with closing(read_journal(by / JOURNAL)) as journal:
                weights = weights_of(journal, changing, f"--by {by}")
        mixed = _mixed(spec, base, training, seed)
        found = cls(spec, base, out, seed, weights, file, mixed, asked)
        facts = {
            "seed": seed,
            "train": train,
            "new": new,
            "images to train on": mixed.fingerprint,
            "questions": asked.fingerprint,
            "shares": weights,
        }
        for name, value in facts.items():
            if kept and kept.get(name) != value:
                raise InputError(
                    f"{out}: holds a retraining with another {name!r}, {kept.get(name)!r}, got "
                    f"{value!r}; another --out begins a new one"
                )
        write_text(record, json.dumps(facts, indent=1) + "\n")
        return found

    def mix(self) -> dict[str, int]:
        """Relation -> images of it in the folder MIX, which is made where it is not there."""
        if not (self.out / MIX).is_dir():
            # of a run that was killed; everything in ``out`` is this command's own
            shutil.rmtree(self.out / f"{MIX}.partial", ignore_errors=True)
            write_mix(self.training, self.out / MIX, self.weights, self.seed)
        told = pd.read_csv(self.out / MIX / "mix.csv")["relation"].value_counts(sort=False)
        return {str(name): int(count) for name, count in told.items()}

    def trained(self, command: str, *, quiet: bool) -> Path:
        """The new model, which the command makes where it is not there.

        It is written beside its place, and moved there once the command has ended well. Raises
        InputError where the command fails, or writes nothing.
        """
        file = self.checkpoint
        if file.exists():
            return file
        partial = file.with_name(f"partial-{file.name}")
        if partial.is_dir():
            shutil.rmtree(partial)
        partial.unlink(missing_ok=True)
        where = {DATA: str((self.out / MIX).absolute()), CHECKPOINT: str(partial)}
        way = f"{self.out / MIX} is kept, and the same command trains again"
        if code := _run(command, {**os.environ, **where}, quiet):
            raise InputError(
                f"--train: expected the command to end with exit code 0, got {code}; {way}"
            )
        if not partial.exists():
            raise InputError(
                f"--train: expected the command to write ${CHECKPOINT}, {str(partial)!r}, found "
                f"nothing there; {way}"
            )
        partial.replace(file)
        return file

    def figures(self, spec: Spec, quiet: bool) -> pd.DataFrame | None:
        """Of the old model or the new one, everything being asked; None where it may cost money, or
        is too much."""
        when = "before" if spec is self.spec else "after"
        with build_model(spec, self.base, self.tested.dataset) as model:
            judged = self.tested.oracle.judge_by is not None
            if model.costs_money or judged or calls_of(self.tested, model) > MAX_CALLS:
                return None
            census = taken(self.tested, model, self.out / when, f"asking, {when}", quiet)
            return by_relation(census, model)

    def compared(
        self, new: Spec, figures: list[pd.DataFrame | None], margin: float, as_json: bool
    ) -> JsonObject:
        """The comparison, and the tables written; both for JSON."""
        where: Filters = {}
        targets = ["overall", "relations"]
        if self.tested.oracle.concepts_are == "classes":
            where = misclassified_under(self.tested)
            targets = ["misclassified", *where]
        filters = {**(self.spec.certify.where or {}), **where}
        certify = self.spec.certify.model_copy(update={"where": filters or None})
        old = self.spec.model_copy(update={"certify": certify})
        verdict = versus.run(
            (old, self.base),
            (new, self.base),
            versus.Asked(margin, None, None, None, "condition", targets, []),
            self.out / VERSUS,
            as_json,
            self.tested,
        )
        known = [each for each in figures if each is not None]
        table = table_of(known, verdict, where).reset_index()
        write_tables(self.out, {"retraining": table})
        rows = json.loads(table.to_json(orient="records"))
        return {"table": rows, "versus": verdict.result.to_dict()}


def _run(command: str, environment: dict[str, str], quiet: bool) -> int:
    """The exit code of a command of the shell, whose output goes to stderr where ``quiet``. Where
    this program is interrupted, all that the command began is ended."""
    stdout = 2 if quiet else None
    with subprocess.Popen(
        command, shell=True, env=environment, stdout=stdout, start_new_session=True
    ) as shell:
        try:
            return shell.wait()
        except BaseException:
            if hasattr(os, "killpg"):
                os.killpg(shell.pid, signal.SIGTERM)
            shell.terminate()  # Windows has no groups of processes
            shell.wait()
            raise


def _gain(table: list[JsonObject]) -> str:
    """What the error of changed images was and is, where everything was asked."""
    row = next((row for row in table if row["relation"] == CHANGED), None)
    if row is None:
        return ""
    before, after = (percent(row[f"error {when}"]) for when in ("before", "after"))
    return f"error under the relations, everything asked: {before} before, {after} after\n"


def renewed(table: Table, base: Path, file: Path, new: list[str] | None) -> Table:
    """The old spec's tables with the new model in ``file``, there or to come. Raises InputError
    for changes outside of [model]."""
    own = {
        "name": f"{table['model'].get('name') or ''} retrained".strip(),
        "version": CONTENT + hash_files(f for f in [file, *sorted(file.rglob("*"))] if f.is_file()),
    }
    if not new:
        model = _with(table["model"], str(_only_file(table["model"], base)), str(file))
        return {**table, "model": {**model, **own}}
    changes = settings(text.replace(PLACE, file.as_posix()) for text in new)
    if others := set(changes) - {"model"}:
        raise InputError(f"--new: expected fields of [model], got {listed(sorted(others))}")
    return merged(merged(table, {"model": own}), changes)


def _only_file(model: Table, base: Path) -> Path:
    """The one existing file that [model] names, as named. Raises InputError for none or several."""
    told = {name: value for name, value in model.items() if name not in PLAIN}
    found = sorted({text for text in _texts(told) if text and (base / text).exists()})
    if len(found) != 1:
        raise InputError(
            "retrain: expected one file in [model] for the new model to take the place of, found "
            f"{listed(found) if found else 'none'}; say how [model] names the new one, such as "
            f"--new model.options.weights={PLACE} or --new model.target=new.py:predict"
        )
    return Path(found[0])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _with(value: Any, old: str, file: str) -> Any:
    """``value`` with ``file`` for every text ``old``."""
    if isinstance(value, dict):
        return {name: _with(part, old, file) for name, part in value.items()}
    if isinstance(value, list):
        return [_with(part, old, file) for part in value]
    return file if isinstance(value, str) and Path(value) == Path(old) else value


def _read(path: Path) -> Dataset:
    return read_dataset(path) if path.suffix == ".toml" else as_dataset(path)


def _mixed(spec: Spec, base: Path, training: Dataset, seed: int) -> QuestionSpace:
    """The images to train on, under the identity and the spec's relations. Its random numbers are
    not those of the questions: the same noise would be met again there."""
    relations = spec.space.relations
    named = relations if IDENTITY in relations else [IDENTITY, *relations]
    apart = int(generator(seed, "retrain follow-ups", spec.space.seed).integers(1, 2**31))
    section = spec.space.model_copy(update={"relations": named, "seed": apart})
    return build_space(spec.model_copy(update={"space": section}), base, training)
