"""``avtt label``: people as readers of an audit's captions, pictures and questions."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..config import Spec
from ..config.building import build_space
from ..config.journaled import refuse_code, spec_of
from ..errors import AvttError, InputError
from ..journal import Journal, read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..people import captions, realism
from ..people.agreement import Scores
from ..people.answers import (
    Answers,
    check_known,
    check_name,
    keep,
    later,
    read_file,
    read_folder,
    read_own,
)
from ..people.captions import Summary
from ..people.cards import Asked, Card, Key, Picture, Pictures, known
from ..people.sessions import Session, run, write_page
from ..people.study import FOLDER, Study, read_by_all
from ..results.report.beside_journal import Reading, Realism, write
from ..results.report.people import reader_rows, realism_rows, wrong
from ..results.report.section import figure
from ..space import QuestionSpace
from .options import Json, RunDir, opt
from .printing import plain_console, table_of
from .run_folder import rewrite

LABELS, REALISM = "labels", "realism"
"""Where answers about captions, and about realism, stand in an audit's folder."""
SHOWN = 8
"""Targets of a reader that are printed, the best known first."""
TERMS = ("targets", "where", "guarantee", "weights", "unanswered")
"""What of a spec's [certify] is certified of readers, too."""
ABOUT_CAPTIONS = (
    "Is the object handled right by both captions? Enter confirms what the audit reports, where it "
    "does. What can be seen of the object counts, not the words alone."
)
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
    """The options of ``avtt label``."""

    reader: str | None = None
    sample: int | None = None
    everything: bool = False
    html: bool = False
    take: Path | None = None
    summary: bool = False
    as_json: bool = False


def label(
    directory: RunDir,
    inspector: Annotated[
        str | None,
        opt(
            "Who labels or reads; each one's answers are kept apart.",
            "NAME",
            flags="--inspector --reader",
        ),
    ] = None,
    realism: Annotated[
        bool,
        opt(
            "Of any audit: pairs of source and follow-up. Realistic? Same diagnosis?",
            flags="--realism",
        ),
    ] = False,
    questions: Annotated[
        bool,
        opt(
            "A reader study: people answer what the model was asked, in that order, and "
            "their error rates are certified by the same draws.",
            flags="--questions",
        ),
    ] = False,
    sample: Annotated[
        int | None,
        opt(
            "Also everything in so many follow-ups drawn at random (default: 0); so many "
            "pairs (--realism; default: 60); the first so many questions (--questions; all)."
        ),
    ] = None,
    everything: Annotated[
        bool, opt("Also everything in all follow-ups; all pairs.", flags="--all")
    ] = False,
    html: Annotated[
        bool, opt("Write a page to label on, instead of asking here.", flags="--html")
    ] = False,
    take: Annotated[Path | None, opt("Add labels that such a page saved.", "FILE")] = None,
    summary: Annotated[
        bool, opt("Say what all labels and answers come to so far.", flags="--summary")
    ] = False,
    as_json: Json = False,
) -> None:
    """Label, judge or answer as a person what an audit found, made or asked.

    By default violations that an audit of captions found are confirmed or
    corrected. With --realism changed pictures of any audit are judged, with
    --questions the model's questions are answered; --summary then writes both
    into the report.

    Example: avtt label runs/first --realism --reader ann --html
    """
    wanted = Wanted(inspector, sample, everything, html, take, summary, as_json)
    label_run(directory, wanted, realism=realism, questions=questions)


def label_run(
    directory: Path, wanted: Wanted, *, realism: bool = False, questions: bool = False
) -> None:
    """Asks on the terminal, writes a page, takes a file, or sums up, of one kind of reading:
    captions, unless it is one of the two. Raises InputError for options that do not go together."""
    if realism and questions:
        raise InputError("expected --realism or --questions, got both")
    if questions and wanted.everything:
        raise InputError("--all: goes with --realism; --questions asks all there are")
    _check(wanted)
    about = _about_realism if realism else _about_questions if questions else _about_captions
    with closing(read_journal(directory / JOURNAL)) as journal:
        about(directory, journal, wanted)


def _check(wanted: Wanted) -> None:
    """Raises InputError for options that contradict or would be ignored."""
    if sum([wanted.html, wanted.take is not None, wanted.summary]) > 1:
        raise InputError("expected one of --html, --take and --summary, got several")
    if wanted.as_json and not wanted.summary:
        raise InputError("--json: goes with --summary")
    if wanted.everything and wanted.sample is not None:
        raise InputError("expected --sample or --all, got both")
    if wanted.reader is not None:
        check_name(wanted.reader)
    chosen = wanted.reader is not None or wanted.sample is not None or wanted.everything
    if chosen and (wanted.summary or wanted.take is not None):
        raise InputError(
            "--take and --summary are about all readers and answers: expected no --reader, "
            "--sample or --all"
        )


def _about_captions(directory: Path, journal: Journal, wanted: Wanted) -> None:
    found, folder = captions.items(journal), directory / LABELS
    asked = known([captions.card_of(item) for item in found])
    if wanted.summary:
        figures = captions.summarise(found, _checked(folder, asked))
        if wanted.as_json:
            typer.echo(json.dumps(figures.as_dict(), indent=1, allow_nan=False))
        else:
            _print_labels(figures, plain_console())
    elif wanted.take is not None:
        _take(wanted.take, folder, asked)
    else:
        reader, seed = _named(wanted), read_facts(journal.facts()).settings.seed
        count = None if wanted.everything else wanted.sample or 0
        cards = [captions.card_of(item) for item in captions.to_label(found, count, seed)]
        if not cards:
            raise InputError(
                "nothing to label: no violation was found; --sample or --all asks more"
            )
        session = Session(cards, reader, read_own(folder, reader), "Labels", ABOUT_CAPTIONS, "")
        _ask(directory, folder, journal, session, _Shown(pictures_of(journal)), wanted.html)


def _about_realism(directory: Path, journal: Journal, wanted: Wanted) -> None:
    """Pairs of source and follow-up: are they realistic, is the diagnosis the same?"""
    folder, asked = directory / REALISM, known([card for card, _ in realism.pairs(journal)])
    if wanted.summary:
        found = realism.summarise(journal, _checked(folder, asked, some=True))
        _told(found, directory, wanted, _print_realism)
    elif wanted.take is not None:
        _take(wanted.take, folder, asked)
    else:
        reader = _named(wanted)
        count = None if wanted.everything else wanted.sample
        shown = _Shown(pictures_of(journal, fine=True))
        if wanted.sample is None and not wanted.everything:
            count = realism.PAIRS
        found_cards = realism.cards(journal, count, shown)
        if not found_cards:
            raise InputError("nothing to judge: the data are gone, and no picture was kept")
        mine = read_own(folder, reader)
        session = Session(found_cards, reader, mine, "Realism", ABOUT_PAIRS, "--realism")
        _ask(directory, folder, journal, session, shown, wanted.html)


def _about_questions(directory: Path, journal: Journal, wanted: Wanted) -> None:
    folder = directory / FOLDER
    space, spec = _built_space(journal)
    study = Study(journal, space)
    if wanted.summary:
        given = _checked(folder, study.known(), some=True)
        typer.echo(f"certifying the answers of {', '.join(given)} ...", err=True)
        found = read_by_all(study, _terms(study, spec), given, directory)
        _told(found, directory, wanted, _print_reading)
    elif wanted.take is not None:
        _take(wanted.take, folder, study.known())
    else:
        reader, cards = _named(wanted), list(study.cards(wanted.sample))
        shown = _Shown(Pictures(journal, space, fine=True), follow_up_alone=True)
        mine = read_own(folder, reader)
        session = Session(cards, reader, mine, "Questions", ABOUT_QUESTIONS, "--questions")
        _ask(directory, folder, journal, session, shown, wanted.html)


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
    directory: Path, folder: Path, journal: Journal, session: Session, shown: _Shown, html: bool
) -> None:
    if html:
        path, facts = folder / f"{session.reader}.html", journal.facts()
        option = f"{session.option} " if session.option else ""
        command = f"avtt label {shlex.quote(str(directory))} {option}--take FILE"
        write_page(path, session, shown, [facts["space"], facts["settings"]])
        typer.echo(
            f"wrote {path}: {len(session.cards)} cards; '{command}' takes the answers it saves"
        )
        return
    if not sys.stdin.isatty():
        raise InputError("expected a terminal to label on, got none; --html writes a page instead")
    console = plain_console()
    run(session, shown, lambda given: keep(folder, [given]), typer.getchar, console, input)


def _built_space(journal: Journal) -> tuple[QuestionSpace, Spec]:
    """What the audit asked about, from its data. Raises AvttError where its spec is not known, or
    its space is code."""
    facts = read_facts(journal.facts())
    spec, base = spec_of(facts, "journal", "its data are not known")
    refuse_code(spec, "journal", "its data are not read anew")
    return build_space(spec, base), spec


def pictures_of(journal: Journal, *, fine: bool = False) -> Pictures:
    """From the data where they are still there, else as the journal has them; that is said."""
    try:
        return Pictures(journal, _built_space(journal)[0], fine=fine)
    except AvttError as error:
        typer.echo(f"avtt: only the journal's small pictures: {error}", err=True)
        return Pictures(journal)


def _take(path: Path, folder: Path, asked: Mapping[Key, Asked]) -> None:
    """Adds a downloaded file, once it was checked; of two answers to one question the later
    counts."""
    given = read_file(path)
    check_known(given, asked, str(path))
    new = later(folder, given)
    keep(folder, new)
    names = ", ".join(sorted({each.reader for each in given})) or "nobody"
    typer.echo(f"took {len(new)} new of {len(given)} answers by {names} into {folder}")


def _checked(folder: Path, asked: Mapping[Key, Asked], *, some: bool = False) -> dict[str, Answers]:
    given = read_folder(folder)
    for reader, own in given.items():
        check_known(own.values(), asked, str(folder / f"{reader}.csv"))
    if some and not any(given.values()):
        raise InputError(f"{folder}: expected answers of readers, got none; --html makes a form")
    return given


def _terms(study: Study, spec: Spec) -> dict[str, Any]:
    certificate = study.facts.certificate
    if certificate is None:
        return {}
    section = spec.certify.model_dump()
    return {name: section[name] for name in TERMS if section[name] is not None} | {
        "half_width": certificate.half_width,
        "at_most": certificate.at_most,
        "confidence": certificate.confidence,
        "surrogate": section["surrogate"] is not False,  # one of a name may be code: not run here
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
    console = plain_console()
    show(found, console)
    console.print(f"report: {page}")


def _print_realism(found: Realism, console: Console) -> None:
    who = ", ".join(f"{name} ({count})" for name, count in found.readers.items())
    console.print(f"judged pairs: {who}")
    columns = ("relation", "realistic", "same diagnosis", "pairs")
    cells = [
        (
            row.name,
            f"{row.realistic} ({row.realistic_interval})",
            f"{row.same} ({row.same_interval})",
            row.pairs,
        )
        for row in realism_rows(found)
    ]
    console.print(table_of(columns, cells, "what most say", words=columns[1:3]))
    console.print("'I cannot tell', and a tie, do not count as yes")
    for name, (kappa, count) in found.kappa.items() if len(found.readers) > 1 else ():
        console.print(f"Fleiss' kappa of {name}: {figure(kappa)}, of {count} pairs")


def _print_reading(found: Reading, console: Console) -> None:
    for reader in found.readers:
        console.print(
            f"{reader.name}: {reader.answered} answered, {reader.certified} count; "
            f"{wrong(reader)} of these were wrong"
        )
        rows = reader_rows(reader)
        if rows:
            columns = ("error rate", "model", reader.name, "difference", "decided")
            cells = [(r.target, r.model, r.reader, r.difference, r.words) for r in rows[:SHOWN]]
            console.print(table_of(columns, cells, words=columns))
            if len(rows) > SHOWN:
                console.print(f"and {len(rows) - SHOWN} more, in the report")
        for note in reader.notes:
            console.print(f"note: {note}")
    if len(found.readers) > 1:
        kappa, count = found.kappa
        console.print(f"Fleiss' kappa: {figure(kappa)}, of {count} answers")


def _print_labels(figures: Summary, console: Console) -> None:
    who = ", ".join(f"{name} ({count})" for name, count in figures.labelled.items())
    console.print(f"labelled objects: {who or 'none'}")
    console.print(_scores_table(figures))
    console.print(_types_table(figures))
    for name, found in (("errors", figures.errors), ("types", figures.kinds)):
        if found.kappa is not None:
            console.print(
                f"Fleiss' kappa of {name}: {found.kappa:.3f}, of {found.count} objects that all "
                "labelled"
            )
    for note in figures.notes:
        console.print(f"note: {note}")


def _scores_table(figures: Summary) -> Table:
    levels = (figures.objects, figures.cases)
    counts = ("reported", "others", "tp", "fp", "fn", "tn", "undecided")
    rows = [
        [name.upper() if len(name) == 2 else name, *(getattr(each, name) for each in levels)]
        for name in counts
    ]
    rows += [
        [name, *(_percent(getattr(each.scores, name)) for each in levels)]
        for name in Scores.__dataclass_fields__
    ]
    return table_of(("", "objects", "cases"), rows, "verdicts against labels")


def _types_table(figures: Summary) -> Table:
    """Pre-labels down, labels across; the sums of right violations at the foot."""
    kinds = list(next(iter(figures.confusion.values()), {}))
    rows = [[guess, *row.values()] for guess, row in figures.confusion.items()]
    sums = [["sum", *(figures.types.get(kind, "") for kind in kinds)]]
    title = "violations by error type, as labelled"
    return table_of(["pre-label", *kinds], rows, title, sums=sums)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
