"""``avtt rejudge``: judge an audit's answers by another oracle, without calls."""

from itertools import starmap
from pathlib import Path

from ..audit import read_result
from ..config.resuming import rejudge_folder
from ..results.result import Result
from ..utils.figures import percent, span
from .printing import print_filled, print_json, table_of
from .run_folder import open_report
from .spec_changes import settings

SHOWN = 12
"""Most targets that are printed; all are in the report."""


def rejudge(
    directory: Path,
    *,
    out: Path,
    oracle: str | None = None,
    set_: list[str] | None = None,
    template: str | None = None,
    reading: str | None = None,
    open_: bool = False,
    json_: bool = False,
) -> None:
    """Judge an audit's answers by another oracle; ask nothing.

    Raw replies of a chat model are read again. DIR is verified first, and not
    changed. Intervals hold for an oracle that was chosen without looking at
    these answers; a threshold tuned on them needs another audit. Code of the
    dataset, the oracle and --reading is run, that of the model is not.

    Example: avtt rejudge runs/first --set oracle.threshold=0.7 --out runs/strict

    Args:
        out: New folder for journal.db, result.json and report.html.
        oracle (NAME): Rule that makes an answer wrong: a name ('avtt list oracles') or
            file.py:name. Default: the audit's, with other options.
        set_ (FIELD=VALUE): A field of [oracle] in SPEC.toml, such as oracle.threshold=0.7;
            oracle.judge=false leaves the judge out; repeatable.
        template (NAME): Prompt template by which a reply to several questions is split. Default:
            the audit's.
        reading (FILE.PY:NAME): Function that reads kept replies: given a reply and a concept, it
            returns True or False, P(yes), words, or None for no answer. Default: built-in rules.
    """
    result = rejudge_folder(directory, oracle, settings(set_), out, template=template, rule=reading)
    if json_:
        print_json(result.to_dict())
    else:
        _show(read_result(directory), result, out)
    if open_:
        open_report(out / "report.html")


def _show(before: Result, now: Result, out: Path) -> None:
    """Print the rates of both oracles, the highest new ones first."""
    certified = now.guarantee is not None
    # rows of targets are the same, while another oracle may name them differently
    known = (now if certified else before).targets["target"]
    then = dict(zip(known, _cells(before), strict=False))  # old slices, the last rows, are dropped
    shown = now.targets.assign(now=_cells(now)).sort_values("estimate", ascending=False)
    cells = [
        (row.target, then.get(row.target, "-"), row.now, row.questions)
        for row in shown.head(SHOWN).itertuples()
    ]
    title = "error rates" if certified else "raw rates, no guarantee"
    table = table_of(("target", "then", "now", "questions"), cells, title)
    print_filled("rejudged", table, now=now, count=len(shown), shown=SHOWN, out=out)


def _cells(result: Result) -> list[str]:
    if result.guarantee is None:
        return [percent(rate) for rate in result.targets["estimate"]]
    bounds = zip(result.targets["lower"], result.targets["upper"], strict=True)
    return [*starmap(span, bounds)]
