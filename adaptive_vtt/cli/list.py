"""``avtt list``: all parts with a name, those of installed packages included."""

import json
from dataclasses import asdict
from importlib import import_module

import typer

from ..errors import InputError, check_known
from ..strategies import COMPARED
from ..types import JsonObject
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


def list_parts(kind: str | None = None, family: str | None = None, *, json_: bool = False) -> None:
    """List available strategies, relations, models and others.

    'avtt init DIR --like NAME' begins with one of the specs.

    Example: avtt list strategies

    Args:
        kind (KIND): relations, datasets, models, oracles, strategies, surrogates or specs. Default:
            list these kinds.
        family (FAMILY): With relations: list those of this family, with severities.
    """
    if kind is not None:
        check_known("kind", kind, KINDS)
    if family is not None and kind != "relations":
        raise InputError(f"FAMILY: expected it after 'relations' alone, got it after {kind!r}")
    if family is None:
        rows = _rows(kind)
    else:
        from ..relations import resolve  # needs image libraries

        keys = ("name", "severities", "about")
        rows = [{key: getattr(member, key) for key in keys} for member in resolve([family])]
    if json_:
        typer.echo(json.dumps(rows, indent=1))
        return
    wide = max(len(row["name"]) for row in rows)
    for row in rows:
        severities = ",".join(map(str, row.get("severities", ())))
        package = row.get("package")
        origin = f" [{package}\xa0{row['version']}]" if package else ""
        words = " ".join(filter(None, (row["about"], row.get("note")))).replace("`", "")
        start = f"{row['name']:{wide}}  " + (f"{severities:9}  " if "severities" in row else "")
        typer.echo(folded(f"{words}{origin}", start))


def _rows(kind: str | None) -> list[JsonObject]:
    """Return the kinds, or the parts of a kind."""
    if kind is None:
        return [{"name": name, "about": about} for name, about in KINDS.items()]
    if kind == SPECS:
        from .init import about, bundled  # all else is quicker without

        return [{"name": name, "about": about(text)} for name, text in bundled().items()]
    registry: Registry = import_module(f"adaptive_vtt.{kind}").REGISTRY
    rows = [asdict(entry) for entry in registry.entries()]
    for name, (typed, _) in COMPARED.items() if kind == "strategies" else ():
        what, _, instead = typed.partition(": ")
        words = f"For 'avtt compare' alone: {what}; in an audit {instead}"
        rows.append(asdict(Entry(name, words)))
    return rows
