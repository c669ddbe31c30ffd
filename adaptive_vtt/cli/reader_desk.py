"""``avtt label --realism`` and ``--questions``: people judge pictures, or answer as models do."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ..errors import InputError
from ..journal import Journal, read_journal
from ..journal.files import JOURNAL
from ..labelling.item_pictures import Picture, Pictures
from ..readers import realism
from ..readers.answers import FILES, check_known, keep, read_folder, read_own
from ..readers.cards import Asked, Card, Key, known
from ..readers.certified import FOLDER, read_by_all
from ..readers.page import Desk, write_page
from ..readers.study import Study
from ..readers.terminal import run
from ..report.people import Reading, Realism, write
from ..report.readers import rows as reader_rows
from ..report.readers import wrong
from ..report.realism import rows as realism_rows
from ..report.section import figure
from ..spec import Spec
from .label_desk import built_space, check, pictures_of, take_file, terminal_key
from .run_folder import rewrite

REALISM = "realism"
"""Where answers about realism stand in an audit's folder."""
SHOWN = 8
"""Targets of a reader that are printed, the best known first."""
TERMS = ("targets", "where", "guarantee", "weights", "unanswered", "surrogate")
"""What of a spec's [certify] is certified of readers, too."""


ABOUT_PAIRS = (
    "The second picture of each pair was made of the first. Say what you see; nobody expects "
    "a certain answer. A click on a picture shows it larger."
)
ABOUT_QUESTIONS = (
    "Please answer in this order, and each question: those after one that is left out cannot "
    'count. "I cannot tell" is an answer. A click on a picture shows it larger.'
)


@dataclass(frozen=True)
class Wanted:
    """The options of ``avtt label`` that both kinds of reading take."""

    reader: str | None
    sample: int | None
    everything: bool
    html: bool
    take: Path | None
    summary: bool
    as_json: bool


def read(directory: Path, wanted: Wanted, *, realism: bool, questions: bool) -> None:
    """Asks on the terminal, writes a page, takes a file, or sums up, of one kind of reading. Raises
    InputError for options that do not go together."""
    if realism and questions:
        raise InputError("expected --realism or --questions, got both")
    if questions and wanted.everything:
        raise InputError("--all: goes with --realism; --questions asks all there are")
    check(
        wanted.reader,
        wanted.sample,
        wanted.everything,
        wanted.html,
        wanted.take,
        wanted.summary,
        wanted.as_json,
    )
    with closing(read_journal(directory / JOURNAL)) as journal:
        (_about_realism if realism else _about_questions)(directory, journal, wanted)


def _about_realism(directory: Path, journal: Journal, wanted: Wanted) -> None:
    """Pairs of source and follow-up: are they realistic, is the diagnosis the same?"""
    folder, asked = directory / REALISM, known([card for card, _ in realism.pairs(journal)])
    if wanted.summary:
        found = realism.summarise(journal, _checked(folder, asked))
        _told(found, directory, wanted, _print_realism)
    elif wanted.take is not None:
        _take(wanted.take, folder, asked)
    else:
        reader = _named(wanted)
        count = None if wanted.everything else wanted.sample
        shown = _Shown(pictures_of(journal, fine=True))
        if wanted.sample is None and not wanted.everything:
            count = realism.PAIRS
        found_cards = realism.deck(journal, count, shown)
        if not found_cards:
            raise InputError("nothing to judge: the data are gone, and no picture was kept")
        mine = read_own(folder, reader)
        desk = Desk(found_cards, reader, mine, "Realism", ABOUT_PAIRS, "--realism")
        _ask(directory, folder, journal, desk, shown, wanted.html)


def _about_questions(directory: Path, journal: Journal, wanted: Wanted) -> None:
    """The questions that the model was asked, in the order of its draws."""
    folder = directory / FOLDER
    space, spec = built_space(journal)
    study = Study(journal, space)
    if wanted.summary:
        given = _checked(folder, study.known())
        typer.echo(f"certifying the answers of {', '.join(given)} ...", err=True)
        found = read_by_all(study, _terms(study, spec), given, directory)
        _told(found, directory, wanted, _print_reading)
    elif wanted.take is not None:
        _take(wanted.take, folder, study.known())
    else:
        reader, cards = _named(wanted), list(study.cards(wanted.sample))
        shown = _Shown(Pictures(journal, space, fine=True), follow_up_alone=True)
        mine = read_own(folder, reader)
        desk = Desk(cards, reader, mine, "Questions", ABOUT_QUESTIONS, "--questions")
        _ask(directory, folder, journal, desk, shown, wanted.html)


# -- asking --------------------------------------------------------------------------------


class _Shown:
    """The pictures of a card, made once."""

    def __init__(self, pictures: Pictures, follow_up_alone: bool = False) -> None:
        self._pictures, self._alone = pictures, follow_up_alone
        self._made: dict[int, tuple[Picture, ...]] = {}

    def __call__(self, card: Card) -> tuple[Picture, ...]:
        if card.number not in self._made:
            pair = self._pictures.of(card) or ()
            self._made[card.number] = pair[1:] if self._alone else pair
        return self._made[card.number]


def _named(wanted: Wanted) -> str:
    if wanted.reader is None:
        raise InputError("--reader: expected the name of whoever reads, got nothing")
    return wanted.reader


def _ask(
    directory: Path, folder: Path, journal: Journal, desk: Desk, shown: _Shown, html: bool
) -> None:
    """Writes the page, or asks on the terminal."""
    if html:
        path, facts = folder / f"{desk.reader}.html", journal.facts()
        write_page(path, desk, shown, [facts["space"], facts["settings"]])
        typer.echo(
            f"wrote {path}: {len(desk.cards)} cards; 'avtt label {directory} {desk.option} "
            "--take FILE' takes the answers it saves"
        )
        return
    key = terminal_key()
    run(desk, shown, lambda given: keep(folder, [given]), key, Console(highlight=False), input)


def _take(path: Path, folder: Path, asked: Mapping[Key, Asked]) -> None:
    take_file(FILES, path, folder, "answers", lambda given: check_known(given, asked, str(path)))


def _checked(folder: Path, asked: Mapping[Key, Asked]) -> Any:
    """All readers' answers. Raises InputError where nobody answered yet."""
    given = read_folder(folder)
    for reader, own in given.items():
        check_known(own.values(), asked, str(folder / f"{reader}.csv"))
    if not any(given.values()):
        raise InputError(f"{folder}: expected answers of readers, got none; --html makes a form")
    return given


# -- the audit -----------------------------------------------------------------------------


def _terms(study: Study, spec: Spec) -> dict[str, Any]:
    """What the model's audit certifies; {} for nothing."""
    certificate = study.facts.certificate
    if certificate is None:
        return {}
    section = spec.certify.model_dump()
    return {name: section[name] for name in TERMS if section[name] is not None} | {
        "half_width": certificate.half_width,
        "at_most": certificate.at_most,
        "confidence": certificate.confidence,
    }


# -- what it comes to ----------------------------------------------------------------------


def _told(
    found: Realism | Reading, directory: Path, wanted: Wanted, show: Callable[[Any, Console], None]
) -> None:
    """Writes it beside the journal, and the report anew; says it."""
    write(found, directory)
    page = rewrite(directory)
    if wanted.as_json:
        typer.echo(found.model_dump_json(indent=1))
        return
    console = Console(highlight=False)
    show(found, console)
    console.print(f"report: {page}", markup=False)


def _print_realism(found: Realism, console: Console) -> None:
    who = ", ".join(f"{name} ({count})" for name, count in found.readers.items())
    console.print(f"judged pairs: {who}", markup=False)
    table = Table("relation", "realistic", "same diagnosis", "pairs", title="what most say")
    for row in realism_rows(found):
        table.add_row(
            row.name,
            f"{row.realistic} ({row.realistic_interval})",
            f"{row.same} ({row.same_interval})",
            str(row.pairs),
        )
    console.print(table)
    for name, (kappa, count) in found.kappa.items():
        console.print(f"Fleiss' kappa of {name}: {figure(kappa)}, of {count} pairs", markup=False)


def _print_reading(found: Reading, console: Console) -> None:
    for reader in found.readers:
        console.print(
            f"{reader.name}: {reader.answered} answered, {reader.certified} count; "
            f"{wrong(reader)} of these were wrong",
            markup=False,
        )
        rows = reader_rows(reader)
        if rows:
            table = Table()
            for column in ("error rate", "model", reader.name, "model less reader", "decided"):
                table.add_column(column, overflow="fold")
            for row in rows[:SHOWN]:
                table.add_row(row.target, row.model, row.reader, row.difference, row.words)
            console.print(table)
            if len(rows) > SHOWN:
                console.print(f"and {len(rows) - SHOWN} more, in the report", markup=False)
        for note in reader.notes:
            console.print(f"note: {note}", markup=False)
    if len(found.readers) > 1:
        kappa, count = found.kappa
        console.print(f"Fleiss' kappa: {figure(kappa)}, of {count} answers", markup=False)
