"""``avtt label``: people confirm or correct what an audit of captions reports."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from ..errors import AvttError, InputError
from ..journal import Journal, read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..labelling.agreement import Scores
from ..labelling.answer_files import AnswerFiles, Given, check_name
from ..labelling.item_pictures import Pictures
from ..labelling.items import Item, by_key, items, to_label
from ..labelling.labels import FILES, check_known, keep, read_folder, read_own
from ..labelling.page import write_page
from ..labelling.session import Session
from ..labelling.summary import Level, Summary, summarise
from ..labelling.terminal import run
from ..space import QuestionSpace
from ..spec import Spec
from ..spec.building import build_space
from ..spec.code import refuse_code
from ..spec.resuming import spec_of

FOLDER = "labels"
"""Where labels stand in an audit's folder."""
One = TypeVar("One", bound=Given)


def label(
    directory: Path,
    *,
    inspector: str | None = None,
    sample: int | None = None,
    everything: bool = False,
    html: bool = False,
    take: Path | None = None,
    summary: bool = False,
    as_json: bool = False,
) -> None:
    """Does one of four: asks on the terminal, writes the page, takes a file, or sums up.

    ``sample``: of so many random follow-ups all objects are asked about, beside all
    violations; ``everything``: of all. Raises InputError for options that do not go together.
    """
    check(inspector, sample, everything, html, take, summary, as_json)
    journal = read_journal(directory / JOURNAL)
    try:
        found = items(journal)
        folder = directory / FOLDER
        if summary:
            _sum_up(found, folder, as_json)
        elif take is not None:
            known = by_key(found)
            take_file(
                FILES, take, folder, "labels", lambda given: check_known(given, known, str(take))
            )
        elif inspector is None:
            raise InputError("--inspector: expected the name of whoever labels, got nothing")
        else:
            seed = read_facts(journal.facts()).settings.seed
            queue = to_label(found, None if everything else sample or 0, seed)
            _ask(journal, queue, folder, inspector, html)
    finally:
        journal.close()


def check(
    inspector: str | None,
    sample: int | None,
    everything: bool,
    html: bool,
    take: Path | None,
    summary: bool,
    as_json: bool,
) -> None:
    """Raises InputError for options that contradict or would be ignored."""
    if sum([html, take is not None, summary]) > 1:
        raise InputError("expected one of --html, --take and --summary, got several")
    if as_json and not summary:
        raise InputError("--json: goes with --summary")
    if everything and sample is not None:
        raise InputError("expected --sample or --all, got both")
    asks = not summary and take is None
    if inspector is not None:
        check_name(inspector)
    if not asks and (inspector is not None or sample is not None or everything):
        raise InputError(
            "--take and --summary are about all inspectors and labels: expected no --inspector, "
            "--sample or --all"
        )


def _ask(journal: Journal, queue: list[Item], folder: Path, inspector: str, html: bool) -> None:
    """Writes the page, or asks on the terminal."""
    mine = read_own(folder, inspector)
    if not queue:
        raise InputError("nothing to label: no violation was found; --sample or --all asks more")
    if html:
        path = folder / f"{inspector}.html"
        facts = journal.facts()
        write_page(
            path, queue, inspector, mine, pictures_of(journal), [facts["space"], facts["settings"]]
        )
        typer.echo(
            f"wrote {path}: {len(queue)} objects; 'avtt label DIR --take FILE' takes the "
            "labels it saves"
        )
        return
    session = Session(queue, inspector, mine, lambda given: keep(folder, [given]))
    run(session, pictures_of(journal), terminal_key(), Console(highlight=False))


def terminal_key() -> Callable[[], str]:
    """Waits for one key. Raises InputError where nobody sits at a terminal."""
    if not sys.stdin.isatty():
        raise InputError("expected a terminal to label on, got none; --html writes a page instead")
    return typer.getchar


def built_space(journal: Journal) -> tuple[QuestionSpace, Spec]:
    """What the audit asked about, from its data. Raises AvttError where its spec is not known, or
    its space is code."""
    facts = read_facts(journal.facts())
    spec, base = spec_of(facts, "journal", "its data are not known", to_run=False)
    refuse_code(spec, "journal", "its data are not read anew")
    return build_space(spec, base), spec


def pictures_of(journal: Journal, *, fine: bool = False) -> Pictures:
    """From the data where they are still there, else as the journal has them; that is said."""
    try:
        return Pictures(journal, built_space(journal)[0], fine=fine)
    except AvttError as error:
        typer.echo(f"avtt: only the journal's small pictures: {error}", err=True)
        return Pictures(journal)


def take_file(
    files: AnswerFiles[One],
    path: Path,
    folder: Path,
    things: str,
    check: Callable[[list[One]], None],
) -> None:
    """Adds a downloaded file, once it passed the ``check``; of two answers to one question the
    later counts."""
    given = files.read(path)
    check(given)
    new = files.later(folder, given)
    files.keep(folder, new)
    names = ", ".join(sorted({each.person for each in given})) or "nobody"
    typer.echo(f"took {len(new)} new of {len(given)} {things} by {names} into {folder}")


def _sum_up(found: list[Item], folder: Path, as_json: bool) -> None:
    labels = read_folder(folder)
    for inspector, own in labels.items():
        check_known(own.values(), by_key(found), str(folder / f"{inspector}.csv"))
    figures = summarise(found, labels)
    if as_json:
        typer.echo(json.dumps(figures.as_dict(), indent=1, allow_nan=False))
    else:
        _print(figures, Console(highlight=False))


def _print(figures: Summary, console: Console) -> None:
    who = ", ".join(f"{name} ({count})" for name, count in figures.labelled.items())
    console.print(f"labelled objects: {who or 'none'}", markup=False)
    console.print(_scores_table(figures))
    console.print(_types_table(figures))
    for name, found in (("errors", figures.errors), ("types", figures.kinds)):
        if found.kappa is not None:
            console.print(
                f"Fleiss' kappa of {name}: {found.kappa:.3f}, of {found.count} objects that all "
                "labelled",
                markup=False,
            )
    for note in figures.notes:
        console.print(f"note: {note}", markup=False)


def _scores_table(figures: Summary) -> Table:
    rows: list[tuple[str, Callable[[Level], Any]]] = [
        ("reported", lambda level: level.reported),
        ("others", lambda level: level.others),
        *(
            (name.upper(), lambda level, name=name: getattr(level, name))
            for name in ("tp", "fp", "fn", "tn")
        ),
        ("undecided", lambda level: level.undecided),
        *(
            (name, lambda level, name=name: _percent(getattr(level.scores, name)))
            for name in Scores.__dataclass_fields__
        ),
    ]
    table = Table("", "objects", "cases", title="verdicts against labels")
    for name, read in rows:
        table.add_row(name, str(read(figures.objects)), str(read(figures.cases)))
    return table


def _types_table(figures: Summary) -> Table:
    """Pre-labels down, labels across; the sums of right violations at the foot."""
    kinds = list(next(iter(figures.confusion.values()), {}))
    table = Table("pre-label", *kinds, title="violations by error type, as labelled")
    for guess, row in figures.confusion.items():
        table.add_row(guess, *map(str, row.values()))
    table.add_section()
    table.add_row("sum", *(str(figures.types.get(kind, "")) for kind in kinds))
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
