"""``avtt label``: people label, judge or answer on a page, and their files are summed up."""

import json
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from ..config.resuming import space_of
from ..errors import AvttError, InputError
from ..journal import Journal, read_journal
from ..journal.files import JOURNAL
from ..models.local.recorded import check_name, read_answers
from ..people.agreement import by_pair
from ..people.captions import captions_task
from ..people.cards import Pictures, Summary, Task, check_answers, keep, read_folder
from ..people.items import COUNT, items_audit, next_command, unshown_text, write_next
from ..people.items import take as take_items
from ..people.page import write_page
from ..people.reading import reading_task
from ..people.realism import realism_task
from ..people.review import review_task, write_accepted
from ..results.advice import Names, Step, next_steps
from ..results.export.items import NEXT
from ..results.report.page import write_run
from ..results.report.run_files import write
from ..results.report.section import figure
from ..results.result import bar_of
from ..results.run import Run
from ..utils.figures import points
from ..utils.files import whole_folder, write_text
from .build_vqa import QUESTIONS, SPEC, spec_text
from .plan import of_items, print_targets
from .printing import plain_console, print_frame
from .run_folder import print_steps, rewrite

IN_MEMORY = "its images were in memory: audit a folder or a table's file to have people answer"
"""Why a journal of an audit in Python shows no images."""


def label(
    directory: Path,
    *,
    reader: str | None = None,
    realism: bool = False,
    questions: bool = False,
    sample: int | None = None,
    all_: bool = False,
    take: list[Path] | None = None,
    summary: bool = False,
    out: Path | None = None,
    id_: str | None = None,
    text: list[str] | None = None,
    group: list[str] | None = None,
    half_width: float | None = None,
    json_: bool = False,
) -> None:
    """Label or judge, as a person, what an audit asked.

    In an audit of captions you confirm or correct its violations. With --realism
    you judge changed pictures of any audit, with --questions you answer the
    model's questions. In a folder of build-vqa you accept, correct or reject
    questions. For a CSV of items, such as texts, --out RUN writes the next 20
    into RUN/next.csv. Fill in its column loss and pass it to --take, until every
    interval is narrow enough.

    Example: avtt label runs/first --realism --reader ann

    Args:
        directory (DIR): Folder that an audit or build-vqa wrote, a TSV of questions, or a CSV of
            items.
        reader (NAME): Write a page for this person.
        realism: Judge pairs of source and follow-up of any audit. Realistic? Same diagnosis?
        questions: Answer the questions that the model was asked, in that order.
        sample: Number of random follow-ups in which all objects are labelled, too (default: 0).
            With --realism: number of pairs (default: 60). With questions: number of the first ones
            (default: all). With a CSV of items: number of the next ones (default: 20).
        all_: Label all objects in all follow-ups, or all pairs.
        take (FILE): Add the answers that such a page saved, or the losses in a CSV; repeatable.
        summary: Print the result of all readers' answers.
        out: New folder for accepted questions, or the run folder of a CSV of items.
        id_ (COLUMN): Column of the names, in a CSV of items.
        text (COLUMN): Column with the text of an item, in a CSV; repeatable.
        group (COLUMN): Column of groups to certify, in a CSV; repeatable.
        half_width (SHARE): Half-width of intervals for a CSV of items (default: 0.1).
    """
    columns = {"id": id_, "text": text or None, "group": group or None, "half_width": half_width}
    if directory.suffix == ".csv":
        return _items(directory, out, columns, take or [], COUNT if sample is None else sample)
    actions = {"--reader": reader, "--take": take, "--summary": summary, "--out": out}
    given = [name for name, value in actions.items() if value]
    table = directory / QUESTIONS if (directory / QUESTIONS).is_file() else directory
    of_audit, some = table.suffix != ".tsv", sample is not None
    mistakes = {
        f"--id, --text, --group, --half-width: expected a CSV of items, got {directory}": (
            any(columns.values())
        ),
        "expected one of --reader NAME, --take FILE, --summary and, of questions, --out FOLDER, "
        f"got {' and '.join(given) or 'none'}": len(given) != 1,
        "expected one of --realism and --questions, and one of --all and --sample": (
            (realism and questions) or (all_ and (questions or some))
        ),
        "--sample and --all: expected --reader NAME with them": reader is None and (all_ or some),
        "--json: expected --summary with it": json_ and not summary,
        "--realism, --questions and --all: expected an audit's folder": (
            not of_audit and (realism or questions or all_)
        ),
        f"--out: expected a folder of build-vqa or a TSV, got {directory}": of_audit and out,
    }
    for sentence, is_wrong in mistakes.items():
        if is_wrong:
            raise InputError(sentence)
    with ExitStack() as stack:
        audit: list[object] = [str(table.absolute())]
        if of_audit:
            journal = stack.enter_context(closing(read_journal(directory / JOURNAL)))
            task, facts = _task(journal, realism, questions, sample, all_), journal.facts()
            audit = [facts["space"], facts["settings"]]
        else:
            task = review_task(table, sample)
        folder = (directory if of_audit else table.parent) / task.folder
        answers = read_folder(folder)
        check_answers(answers, task.known, str(folder))
        if take:
            return _take(folder, task, take)
        if reader is not None:
            cards, page = task.cards(), folder / f"{check_name(reader, '--reader')}.html"
            write_page(page, task, cards, answers, reader, audit)
            typer.echo(f"wrote {page}: {len(cards)} cards")
            command = " ".join(["avtt label", shlex.quote(str(directory)), *task.option.split()])
            typer.echo(f"'{command} --take FILE' takes the answers that it saves")
        elif answers.empty:
            raise InputError(f"{folder}: expected answers, got none; --reader NAME writes a page")
        elif out is not None:
            with whole_folder(out) as written:
                count = write_accepted(table, answers, written / QUESTIONS)
                write_text(written / SPEC, spec_text())
            typer.echo(f"wrote {out}: {count} questions")
        else:
            _print(task.summarise(answers), answers, directory, json_)


def _items(
    table: Path, out: Path | None, columns: dict[str, Any], files: Sequence[Path], count: int
) -> None:
    """Take the losses in files, write the next items, and print where the audit stands."""
    if out is None:
        again = f"'avtt label {shlex.quote(str(table))} --out runs/{shlex.quote(table.stem)}'"
        raise InputError(f"--out: expected the folder of a run with a CSV of items, as in {again}")
    if count < 1:
        raise InputError(f"--sample: expected 1 or more items, got {count}")
    with items_audit(table, out, columns) as audit:
        if not audit.state().calls and not files:
            width = points(audit.certify.half_width or 0.0)
            plan = of_items(audit.space, audit.certify)
            print_targets(plan, f"labels in all until certified to {width}")
            kept = audit.journal.facts()["items"]
            names = f"by column {kept['id']!r}" if kept["id"] else "by their row, from 0"
            typer.echo(f"items are named {names}; --id COLUMN and another --out change that")
            if column := unshown_text(table, kept):
                option = f"--text {shlex.quote(column)}"
                typer.echo(f"{NEXT} shows no text; {option} with another --out shows that column")
        for file in files:
            typer.echo(f"took {take_items(audit, file)} losses from {file}")
        asked = write_next(audit, out, count)
        result = write_run(audit.journal, out)
        # losses count in the order of the draws
        counted = min([result.questions, *(call.draw for call in asked[:1])])
        if whole := result.questions:
            rates = result.targets[["target", "certified"]].copy()
            rates.insert(1, "estimate and interval", [bar_of(s).words for s in result.statuses])
            part = f"{counted} of {whole}" if counted < whole else str(whole)
            print_frame(f"after {part} label{'s' * (whole != 1)}", rates)
        for warning in result.warnings:
            plain_console().print(f"warning: {warning}")
        if not asked:
            typer.echo(f"no more labels are needed: {result.reason}\nreport: {out / 'report.html'}")
            run = Run(audit.journal)
            return print_steps(next_steps(run, Names.of(run, out)))
        file = out / NEXT
        typer.echo(f"wrote {file}: {len(asked)} items; fill in 'loss', 0 (fine) to 1 (all wrong)")
        if later := whole - counted:
            wait = f"{later} label{'s wait' if later > 1 else ' waits'} for earlier items"
            typer.echo(f"{wait}, first {asked[0].prompt.sample_id!r}: give each a loss or 'unsure'")
        taking = f"{next_command(table, out)} --take {shlex.quote(str(file))}"
        print_steps([Step(taking, "takes the losses, asks for the next items")])


def _task(
    journal: Journal, realism: bool, questions: bool, sample: int | None, everything: bool
) -> Task:
    """Return the labelling task of an audit, with small pictures alone if its data are gone."""
    try:
        space = space_of(journal, "journal", IN_MEMORY, run_code=False)
        pictures = Pictures(journal, space, alone=questions)
    except AvttError as error:
        if questions:
            raise
        typer.echo(f"avtt: only the journal's small pictures: {error}", err=True)
        pictures = Pictures(journal)
    if questions:
        return reading_task(journal, space, pictures, sample)
    return (realism_task if realism else captions_task)(journal, pictures, sample, everything)


def _take(folder: Path, task: Task, files: Sequence[Path]) -> None:
    """Add the answers in files, after all of them were checked; print the readers' agreement."""
    taken = [read_answers(file) for file in files]
    for file, answers in zip(files, taken, strict=True):
        check_answers(answers, task.known, str(file))
    for answers in taken:
        new = keep(folder, answers)
        readers = ", ".join(sorted(answers["reader"].unique())) or "nobody"
        typer.echo(f"took {new} new of {len(answers)} answers by {readers} into {folder}")
    answers = read_folder(folder)
    if answers["reader"].nunique() > 1:
        _print_agreement(task.summarise(answers), answers)


def _print(summary: Summary, answers: pd.DataFrame, directory: Path, as_json: bool) -> None:
    """Print the summary of answers; judgements of realism go into the report, too."""
    if summary.realism is not None:
        write(summary.realism, directory)
        typer.echo(f"report: {rewrite(directory)}", err=True)
    figures, readers = summary.figures, summary.figures["readers"]
    if as_json:
        pairs = json.loads(by_pair(answers).to_json(orient="records"))
        typer.echo(json.dumps({**figures, "pairs": pairs}, indent=1, allow_nan=False, default=int))
        return
    for name, count in readers.items():
        typer.echo(f"{name}: {count} answered")
    for title, table in summary.tables.items():
        print_frame(title, table)
    if len(readers) > 1:
        _print_agreement(summary, answers)
    for note in summary.notes:
        plain_console().print(f"note: {note}")


def _print_agreement(summary: Summary, answers: pd.DataFrame) -> None:
    print_frame("the same answer", by_pair(answers))
    for name, (kappa, count) in summary.figures["kappa"].items():
        typer.echo(f"Fleiss' kappa of {name}: {figure(kappa)}, of {count} that all answered")
