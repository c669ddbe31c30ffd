"""``avtt list``: every part that goes by a name, those of installed packages among them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module

import typer

from ..errors import InputError, check_known
from ..strategies import COMPARED
from ..utils.registry import Entry, Registry
from .printing import folded

SPECS = "specs"
KINDS = {
    "relations": "what is done to an image",
    "datasets": "where images and labels come from",
    "models": "what is audited",
    "oracles": "what makes an answer wrong",
    "strategies": "what chooses the next question",
    "surrogates": "what predicts the model",
    SPECS: "complete audits to begin from",
}


def list_parts(
    kind: str | None = None,
    family: str | None = None,
    *,
    json_: bool = False,
) -> None:
    """List available strategies, relations, models and other parts.

    'avtt init DIR --like NAME' begins with one of the specs.

    Example: avtt list strategies

    Args:
        kind (KIND): relations, datasets, models, oracles, strategies, surrogates, specs. Default:
            names these.
        family (FAMILY): Of relations: those of this family, with severities.
    """
    if kind is None:
        _print(KINDS, json_)
        return
    if family is not None:
        if kind != "relations":
            raise InputError(f"FAMILY: expected it after 'relations' alone, got it after {kind!r}")
        _list_family(family, json_)
        return
    if kind == SPECS:
        from .init import about, bundled  # all else is quicker without

        _print({name: about(text) for name, text in bundled().items()}, json_)
        return
    check_known("kind", kind, KINDS)
    found: Registry = import_module(f"adaptive_vtt.{kind}").REGISTRY
    entries = [*found.entries(), *_compared(kind)]
    if json_:
        typer.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    wide = max(len(entry.name) for entry in entries)
    for entry in entries:
        typer.echo(_line(entry, wide))


def _compared(kind: str) -> list[Entry]:
    """Words that stand for strategies in 'avtt compare' alone."""
    if kind != "strategies":
        return []
    told = ((name, typed.partition(": ")) for name, (typed, _) in COMPARED.items())
    return [
        Entry(name, f"For 'avtt compare' alone: {what}; in an audit {typed}")
        for name, (what, _, typed) in told
    ]


def _list_family(family: str, as_json: bool) -> None:
    from ..relations import resolve

    members = resolve([family])
    if as_json:
        rows = [{"name": m.name, "severities": [*m.severities], "about": m.about} for m in members]
        typer.echo(json.dumps(rows, indent=1))
        return
    wide = max(len(member.name) for member in members)
    for member in members:
        severities = ",".join(map(str, member.severities))
        typer.echo(folded(member.about, f"{member.name:{wide}}  {severities:9}  "))


def _print(told: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        entries = [{"name": name, "about": said} for name, said in told.items()]
        typer.echo(json.dumps(entries, indent=1))
        return
    wide = max(map(len, told))
    for name, said in told.items():
        typer.echo(folded(said, f"{name:{wide}}  "))


def _line(entry: "Entry", wide: int) -> str:
    origin = f" [{entry.package}\xa0{entry.version}]" if entry.package else ""
    said = " ".join(text for text in (entry.about, entry.note) if text).replace("`", "")
    return folded(f"{said}{origin}", f"{entry.name:{wide}}  ")
