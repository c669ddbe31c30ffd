"""What can be checked of a journal before any code that its spec names is imported.

A run folder is a program: its spec says what `avtt resume` imports or starts. So the spec must
be the one the audit was begun with, and fit what stands beside it, before that happens. This
finds damage and careless edits; who can write the folder can write all of it.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine.settings import same_audit
from ..errors import JournalError
from ..space import QuestionSpace
from . import ModelSpec, Spec

_COMPARED = ("strategy", "seed", "candidates", "form", "history")


def notes_of(spec: Mapping[str, Any], base: str) -> dict[str, Any]:
    """What a journal keeps of a spec and the folder its paths start at, to be resumed by."""
    return {"spec": spec, "base": base, "program": _digest(spec, base)}


def check_program(facts: Mapping[str, Any], spec: Spec, where: str) -> None:
    """Raises JournalError where the journal's spec is not the one the audit was begun with.

    ``facts``: the journal's; ``spec``: its spec, parsed. Journals from before the digest must
    name the model as their spec does.
    """
    if "program" in facts:
        if facts["program"] != _digest(facts["spec"], facts["base"]):
            raise JournalError(
                f"{where}: its spec was altered after the audit began, and nothing of it was run; "
                "restore the journal, or begin a new audit with another --out"
            )
        return
    named, names = facts.get("settings", {}).get("model"), _names(spec.model)
    if named is not None and names and named not in names:
        raise JournalError(
            f"{where}: was begun with model {named!r}, and its spec names {names[-1]!r}, which was "
            "not run; resume it from Python with adaptive_vtt.Audit(..., journal=...)"
        )


def check_before_code(facts: Mapping[str, Any], spec: Spec, space: QuestionSpace) -> None:
    """Raises JournalError where space or settings are not those the audit was begun with."""
    if "space" not in facts:
        return  # killed before it began
    begun = facts["settings"]
    given = {name: getattr(spec.audit, name) for name in _COMPARED}
    known = {n: v for n, v in given.items() if v is not None and n in begun}
    same_audit(dict(facts), space, known)


def _names(model: ModelSpec) -> list[str]:
    """What a model that is code may be called in a journal; none for one that is data."""
    if model.kind == "python":
        found = [model.name, model.target]
    elif model.kind == "subprocess" and model.command:
        words = model.command.split() if isinstance(model.command, str) else model.command
        found = [model.name, Path(words[0]).name]
    else:
        found = []
    return [name for name in found if name]


def _digest(spec: Mapping[str, Any], base: str) -> str:
    text = json.dumps([spec, base], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
