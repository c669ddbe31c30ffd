"""``avtt``: every command, thin over the library. Errors are one line, exit code 2."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ..errors import AvttError
from .signals import interruptible

app = typer.Typer(
    name="avtt",
    help="Audit an expensive vision model with few calls.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
relations_app = typer.Typer(
    help="What makes follow-up images.\n\nExample: avtt relations list", no_args_is_help=True
)
app.add_typer(relations_app, name="relations")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for journal, result and report.")]
RunDir = Annotated[Path, typer.Argument(help="Folder an audit wrote.", metavar="DIR")]


@app.command()
def audit(  # noqa: PLR0913, PLR0917 - a command's options
    spec: Annotated[
        Path | None,
        typer.Argument(help="What to audit; 'avtt init' writes one.", metavar="SPEC.toml"),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Audit the bundled model.")] = False,
    budget: Annotated[int | None, typer.Option(help="At most so many calls.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="At most so much money, in the unit of the prices.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Which questions come next.")] = None,
    uncertainty: Annotated[
        float | None, typer.Option(help="Stop at this share of the prior uncertainty.")
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Stop when every target is known to this, either way.")
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(help="Stop when every target is surely on one side of this.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Probability that all intervals hold at all times.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="overall, concepts, relations, group:COLUMN ...; commas; see SPEC.toml."),
    ] = None,
    require_certified: Annotated[
        bool, typer.Option("--require-certified", help="Exit with 3 if a target is not certified.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same audit; by default a new one each time.")
    ] = None,
    canaries: Annotated[
        int | None, typer.Option(help="Answered questions asked again, to notice a changed model.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--dry-run", help="Say what it may take and cost; ask nothing.")
    ] = False,
    out: Out = Path("runs/audit"),
    as_json: Json = False,
) -> None:
    """Ask a model until a stopping rule is met, and leave a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run. --dry-run checks it
    and runs none of it.

    Example: avtt audit SPEC.toml --half-width 0.05 --budget 500 --out runs/first
    """
    changes = {
        "budget": budget,
        "max_cost": max_cost,
        "strategy": strategy,
        "uncertainty": uncertainty,
        "half_width": half_width,
        "at_most": at_most,
        "confidence": confidence,
        "targets": _names(targets),
        "seed": seed,
        "canaries": canaries,
    }
    with interruptible(out):
        from .run_folder import begin, read, run_and_report

        chosen, base = read(spec, demo, changes)
        if plan:
            from .dry_run import dry_run

            return dry_run(chosen, base, as_json)
        run_and_report(begin(chosen, base, out), out, as_json, require_certified)
        if demo and not as_json:
            from .uniform_baseline import compare_with_uniform

            compare_with_uniform(chosen, base, out)


@app.command()
def resume(directory: RunDir, as_json: Json = False) -> None:
    """Go on with an audit that was interrupted; no answer that came back is paid for twice.

    A run folder is a program, as a Makefile is: the model its journal names is run, once space
    and settings were found to be those of the audit. report, verify, export and label run
    nothing of it.

    Example: avtt resume runs/first
    """
    with interruptible(directory):
        from .run_folder import go_on, run_and_report

        run_and_report(go_on(directory), directory, as_json)


@app.command()
def report(directory: RunDir) -> None:
    """Write report.html and result.json anew, from the journal alone.

    Example: avtt report runs/first
    """
    from .run_folder import rewrite

    typer.echo(f"wrote {rewrite(directory)}")


@app.command()
def verify(
    directory: RunDir,
    head: Annotated[
        str | None,
        typer.Option(help="The journal's head as you kept it elsewhere.", metavar="HASH"),
    ] = None,
) -> None:
    """Check the journal's file, chain and rows; recompute every interval, with code of its own;
    compare every field of result.json, and the report's head.

    This finds damage and careless edits. Whoever rewrites the whole journal can make it fit
    itself: against that, keep the head (in result.json and the report) elsewhere, and give it
    as --head. Nothing is written, and an audit may be running.

    Example: avtt verify runs/first --head 0123456789abcdef0123456789abcdef
    """
    from .verify import check

    typer.echo(check(directory, head))


@app.command()
def pictures(
    spec: Annotated[Path, typer.Argument(help="What to audit.", metavar="SPEC.toml")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write; new, or empty.")],
) -> None:
    """Write every picture an audit may ask about, with a table for a model's answers.

    Example: avtt pictures SPEC.toml --out pictures
    """
    from .pictures import pictures as run_pictures

    run_pictures(spec, out)


@app.command()
def label(
    directory: RunDir,
    inspector: Annotated[str | None, typer.Option(help="Who labels.", metavar="NAME")] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Beside all violations, everything in so many random follow-ups."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The same of all follow-ups.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Write a page to label on, instead of asking here.")
    ] = False,
    take: Annotated[
        Path | None, typer.Option(help="Add labels that such a page saved.", metavar="FILE")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Precision, recall, error types and agreement.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Confirm or correct, as a person, the violations that an audit of captions found.

    Example: avtt label runs/captions --inspector ann --sample 50
    """
    from .label import label as run_label

    run_label(
        directory, inspector=inspector, sample=sample, everything=everything, html=html,
        take=take, summary=summary, as_json=as_json,
    )  # fmt: skip


@app.command()
def export(
    directory: RunDir,
    failures: Annotated[
        Path, typer.Option("--failures", help="Folder to write; new, or empty.", metavar="OUT")
    ],
    least_loss: Annotated[
        float, typer.Option(help="What counts as a failure: this loss or more (0 to 1).")
    ] = 0.5,
    as_json: Json = False,
) -> None:
    """Write the images that were answered wrongly, with labels and masks, as a dataset.

    Example: avtt export runs/first --failures failures
    """
    from .export import export as write

    write(directory, failures, least_loss, as_json)


@app.command()
def compare(
    spec: Annotated[Path | None, typer.Argument(help="What to audit.", metavar="SPEC.toml")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on the bundled model.")] = False,
    strategies: Annotated[
        str, typer.Option(help="Names, separated by commas; baselines: all there is to compare.")
    ] = "random,uncertainty+unpredictability",
    repeats: Annotated[int, typer.Option(help="Audits per strategy, each with its seed.")] = 3,
    half_width: Annotated[
        float | None, typer.Option(help="Certify every target to this, against uniform questions.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="overall, concepts, relations, group:COLUMN ...; commas; see SPEC.toml."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="At most so many calls each.")] = None,
    exhaust: Annotated[
        bool,
        typer.Option("--exhaust", help="Ask the model everything once, to know the truth."),
    ] = False,
    out: Out = Path("runs/compare"),
    as_json: Json = False,
) -> None:
    """Run several strategies on the same space and show how fast each one learns.

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5
    """
    from .compare import compare as run_compare
    from .run_folder import read

    changes = {"budget": budget, "half_width": half_width, "targets": _names(targets)}
    chosen, base = read(spec, demo, changes)
    run_compare(chosen, base, _names(strategies) or [], repeats, out, as_json, exhaust)


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Folder to write into.", metavar="DIR")],
) -> None:
    """Write a commented SPEC.toml, a model stub and a few images that run as they are.

    Example: avtt init my-audit && avtt audit my-audit/SPEC.toml
    """
    from .init import write_start

    typer.echo(f"wrote {write_start(directory)}\nnext: avtt audit {directory / 'SPEC.toml'}")


@app.command("serve-demo")
def serve_demo(
    captions: Annotated[
        bool,
        typer.Option(
            "--captions", help="Describe drawn scenes; --error-rate is then what is left out."
        ),
    ] = False,
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes a free one.")] = 8008,
    key_env: Annotated[
        str | None, typer.Option(help="Ask for the key this variable holds.", metavar="NAME")
    ] = None,
    latency: Annotated[float, typer.Option(help="Seconds until an answer, median.")] = 0.2,
    error_rate: Annotated[float, typer.Option(help="Mean share of wrong answers.")] = 0.1,
    worse: Annotated[float, typer.Option(help="Added to it where most perturbed.")] = 0.3,
    faults: Annotated[
        float, typer.Option(help="Share of 429s, 5xx, hangs and cut answers, together.")
    ] = 0.05,
    refusals: Annotated[float, typer.Option(help="Share of questions refused.")] = 0.01,
    rambling: Annotated[float, typer.Option(help="Share of answers buried in words.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Same seed, same frames and answers.")] = 0,
    count: Annotated[int, typer.Option(help="Synthetic frames it knows.")] = 200,
    size: Annotated[int, typer.Option(help="Their side in pixels.")] = 256,
) -> None:
    """Serve a model on this machine that is asked like a paid one, to try an audit on.

    Example: avtt serve-demo --latency 0.5 --error-rate 0.2
    """
    from .serve_demo import serve

    serve(
        port=port, key_env=key_env, latency=latency, error_rate=error_rate, worse=worse,
        faults=faults, refusals=refusals, rambling=rambling, seed=seed, count=count, size=size,
        captions=captions,
    )  # fmt: skip


@relations_app.command("list")
def list_relations(
    family: Annotated[
        str | None, typer.Argument(help="List the relations of this one.", metavar="FAMILY")
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the built-in relations and families; those of a family with severities and meaning.

    Example: avtt relations list medtest
    """
    from .relations import list_relations as show

    show(family, as_json)


@relations_app.command("preview")
def preview(
    image: Annotated[Path, typer.Argument(help="Any image.", metavar="IMAGE")],
    out: Annotated[Path, typer.Option(help="Where to write the sheet (.png or .html).")] = Path(
        "preview.png"
    ),
    relations: Annotated[
        str | None,
        typer.Option(help="Names and families, separated by commas (default: the graded ones)."),
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(help="What relations keep off, white on black.", metavar="MASK")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same sheet.")] = 0,
) -> None:
    """Write a sheet of relations at every severity, applied to one image.

    Example: avtt relations preview photo.jpg --relations medtest,imagenet-c/fog --out sheet.html
    """
    from .relations import preview as draw

    draw(image, out, _names(relations), mask, seed)
    typer.echo(f"wrote {out}")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; mistakes of the user end with one line on stderr and exit code 2."""
    try:
        sys.exit(app(arguments, prog_name="avtt", standalone_mode=False))
    except AvttError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except typer.Abort:
        _fail("aborted", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message(), 2)  # an option or argument typer could not use


def _fail(message: str, code: int) -> NoReturn:
    sentence = " ".join(message.split())
    if sentence:
        typer.echo(f"avtt: {sentence}", err=True)
    sys.exit(code)
