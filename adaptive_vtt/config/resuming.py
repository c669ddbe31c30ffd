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
from ..journal.facts import Facts
from ..space import QuestionSpace
from . import Spec, parse_spec
from .code import contents

_COMPARED = ("strategy", "seed", "candidates", "form", "history")


def notes_of(spec: Spec, base: str) -> dict[str, Any]:
    """What a journal keeps of a spec and the folder its paths start at, to be resumed by.

    ``parts``: of each part of the space that is code, a hash of its file or its version.
    """
    table = spec.model_dump(exclude_none=True)
    notes = {"spec": table, "base": base, "program": _digest(table, base)}
    parts = contents(spec, Path(base))
    return {**notes, "parts": parts} if parts else notes


def spec_of(facts: Facts, where: str, otherwise: str) -> tuple[Spec, Path]:
    """The spec that a journal keeps, and the folder its paths start at; ``where``: for messages.

    Nothing that it names is imported. Raises InputError where it cannot be read, and
    JournalError where there is none, which says what to do ``otherwise``.
    """
    if facts.certificate is not None and facts.certificate.versus is not None:
        raise JournalError(
            f"{where}: holds a comparison of two models; the 'avtt versus' command that began it "
            "goes on with it, and 'avtt report', 'verify' and 'gate' read it"
        )
    if facts.spec is None:
        raise JournalError(f"{where}: was not begun by 'avtt audit'; {otherwise}")
    return parse_spec(facts.spec, where), Path(facts.base)


def check_program(facts: Facts, spec: Spec, where: str, *, judge: bool = True) -> None:
    """Raises JournalError where the journal's spec is not the one the audit was begun with.

    ``facts``: the journal's; ``spec``: its spec, parsed. ``judge``: whether its oracle and what
    chooses questions will be run, too; else they may have changed.
    """
    if facts.program != _digest(facts.spec, facts.base):
        raise JournalError(
            f"{where}: its spec was altered after the audit began, and nothing of it was run; "
            "restore the journal, or begin a new audit with another --out"
        )
    _check_parts(facts, spec, where, () if judge else ("oracle.", "audit."))


def check_before_code(facts: Facts, spec: Spec, space: QuestionSpace) -> None:
    """Raises JournalError where space or settings are not those the audit was begun with."""
    given = {name: getattr(spec.audit, name) for name in _COMPARED}
    known = {n: v for n, v in given.items() if v is not None and n in facts.begun_with}
    same_audit(facts, space, known)


def _check_parts(facts: Facts, spec: Spec, where: str, apart: tuple[str, ...]) -> None:
    """Raises JournalError where code of the space is not what the audit was begun with; fields
    that begin as one of ``apart`` are not looked at."""
    begun = facts.parts
    for field, content in contents(spec, Path(facts.base)).items():
        if not field.startswith(apart) and begun.get(field) != content:
            raise JournalError(
                f"{where}: {field} was changed after the audit began, and was not run: expected "
                f"{begun.get(field) or 'nothing'}, got {content or 'nothing'}; restore it, or "
                "begin a new audit with another --out"
            )


def _digest(spec: Mapping[str, Any] | None, base: str) -> str:
    text = json.dumps([spec, base], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
