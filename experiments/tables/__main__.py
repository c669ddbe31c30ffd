"""Join runs into a paper's tables, with the paper's own figures below, within seconds.

A run is the folder of an audit, a census or a comparison, with an optional name for the table:
FOLDER=MODEL, FOLDER=MODEL@SET or FOLDER=@SET. Cells have an estimate and its certified interval;
exact figures and those of the papers have no interval. LaTeX has estimates alone. Without a run the
paper's figures are printed.

Example: python -m adaptive_vtt.experiments.tables medmnistc runs/oct=ours runs/blood=ours
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from adaptive_vtt.errors import AvttError

from . import endobench, medmnistc, medtest, reic
from .layout import FORMATS, Table
from .runs import Run, read_run

PAPERS: dict[str, Callable[[Sequence[Run], Sequence[Run]], list[Table]]] = {
    "medtest": medtest.tables,
    "medmnistc": medmnistc.tables,
    "endobench": endobench.tables,
    "reic": reic.tables,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m adaptive_vtt.experiments.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", choices=PAPERS, help="the paper")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="FOLDER[=MODEL][@SET]")
    after = "runs of retrained models, to compare with RUN"
    parser.add_argument("--after", nargs="+", default=[], metavar="RUN", help=after)
    parser.add_argument("--format", choices=FORMATS, help="print this format")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write all formats into a folder")
    chosen = parser.parse_args(arguments)
    try:
        runs, retrained = (list(map(read_run, named)) for named in (chosen.runs, chosen.after))
        tables = PAPERS[chosen.paper](runs, retrained)
    except AvttError as error:
        parser.exit(2, f"{error}\n")
    for table in tables:
        if runs and not table.ours:
            continue
        if chosen.out:
            table.write(chosen.out)
        if chosen.format:
            print(table.text(chosen.format))
        else:
            table.show()


if __name__ == "__main__":
    main()
