"""The spec that a journal keeps: the parts that are code, and whether they have changed.

A run folder is a program: its spec names the code that `avtt resume` runs. Before code is run, the
spec is checked: it must be that of the audit's beginning, and fit the journal. The check imports
nothing. It detects damage and careless edits, but no forgery: whoever can write the folder can
write all of it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from ..audit.progress import guarded
from ..datasets import REGISTRY as DATASETS
from ..engine.calling import OnProgress
from ..engine.settings import same_audit
from ..errors import InputError, JournalError, unexpected
from ..journal.facts import Facts
from ..models import REGISTRY as MODELS
from ..oracles import REGISTRY as ORACLES
from ..oracles.captions import DETECTORS, language
from ..relations import REGISTRY as RELATIONS
from ..space import QuestionSpace
from ..strategies import REGISTRY as STRATEGIES
from ..surrogates import REGISTRY as SURROGATES
from ..types import JsonObject
from ..utils.files import hash_file
from ..utils.other_code import file_of, is_target, load_object
from ..utils.registry import Registry
from . import Spec, parse_spec
from .models import OwnSection
from .oracles import CaptionOracleSection, WordsSection

ON_PROGRESS = "audit.on_progress"
_COMPARED = ("strategy", "seed", "candidates", "form", "history")
"""Options of [audit] that an audit is resumed with unchanged."""


def code_parts(spec: Spec) -> dict[str, tuple[Registry, str]]:
    """Return the parts of a space, its strategy and its surrogate that are code.

    Models and proxies are not included, as a space can be built without them.

    Returns:
        Field -> registry and name.
    """
    oracle, space, surrogate = spec.oracle, spec.space, spec.certify.surrogate
    transforms = [each.transform for each in space.transforms or ()]
    named: dict[str, tuple[Registry, str | None]] = {
        "dataset.kind": (DATASETS, spec.dataset.kind),
        "detector.kind": (DETECTORS, getattr(spec.detector, "kind", None)),
        **{f"space.relations: {name}": (RELATIONS, name) for name in space.relations},
        **{f"space.transforms: {name}": (RELATIONS, name) for name in transforms},
        "oracle.kind": (ORACLES, getattr(oracle, "kind", None)),
        "audit.strategy": (STRATEGIES, spec.audit.strategy),
        "certify.surrogate": (SURROGATES, surrogate if isinstance(surrogate, str) else None),
    }
    code = {f: (kind, name) for f, (kind, name) in named.items() if name and kind.is_code(name)}
    if isinstance(oracle, CaptionOracleSection):
        options = oracle.values()
        for field in ("tagger", "words", "inpainting"):
            name = options.get(field)
            if name is not None and language.is_code(name):
                code[f"oracle.{field}"] = (ORACLES, name)
    judge = oracle.judge if isinstance(oracle, WordsSection) else None
    if judge is not None and isinstance(judge.model, OwnSection):
        code["oracle.judge.model"] = (MODELS, judge.model.code)
    return code


def contents(spec: Spec, base: Path) -> dict[str, str | None]:
    """Return the content of each part that is code, by field.

    It is a hash of its file, or its package and version, or None if there is neither. Relative
    files start at ``base``.
    """
    return {field: content_of(*part, base) for field, part in code_parts(spec).items()}


def _parts_of_call(call: JsonObject) -> dict[str, tuple[Registry, str]]:
    """Return the parts of the space of a call in Python that are code; see ``code_parts``."""
    oracle = call["oracle"]["kind"] if isinstance(call["oracle"], dict) else call["oracle"]
    named: dict[str, tuple[Registry, str]] = {"oracle": (ORACLES, oracle)} if oracle else {}
    named |= {f"relations: {name}": (RELATIONS, name) for name in call["relations"] or ()}
    return {f: (kind, name) for f, (kind, name) in named.items() if kind.is_code(name)}


def refuse_code(begun: Spec | JsonObject, where: str) -> None:
    """Raise InputError if the space or the strategy of a spec, or of a call in Python, is code."""
    parts = code_parts(begun) if isinstance(begun, Spec) else _parts_of_call(begun)
    for field, (_, name) in parts.items():
        part = field if name in field else f"{field} {name!r}"
        raise InputError(
            f"{where}: {part} is code, which is not run here; --run-code runs it, if it is as it "
            "was then"
        )


def content_of(registry: Registry, name: str, base: Path) -> str | None:
    """Return the content of one part that is code; see ``contents``."""
    if is_target(name):
        return _content_of_target(name, base)
    package = registry.package_of(name)
    return None if package is None else " ".join(package)


def newer_model(facts: Facts, journal: Path) -> Path | None:
    """Return the file of the model's code if it was changed after the journal was written."""
    name = (facts.spec or {}).get("model", {}).get("target")
    file = file_of(name, Path(facts.base)) if name else None
    if file is None or not file.is_file() or file.stat().st_mtime <= journal.stat().st_mtime:
        return None
    return None if hash_file(file) in (facts.model_version or "") else file


def _content_of_target(name: str, base: Path) -> str | None:
    file = file_of(name, base)
    if file is not None:
        return hash_file(file) if file.is_file() else None
    top = name.partition(":")[0].partition(".")[0]
    packages = _installed().get(top, [])
    return ", ".join(f"{each} {version(each)}" for each in sorted(set(packages))) or None


_installed = cache(packages_distributions)  # reads the metadata of all installed packages


def notes_of(spec: Spec, base: str) -> dict[str, Any]:
    """Return the notes that a journal needs to be resumed.

    They are the spec, the folder that its paths start at, and the content of each part that is
    code.
    """
    table = spec.model_dump(exclude_none=True)
    notes = {"spec": table, "base": base, "program": _digest(table, base)}
    parts = contents(spec, Path(base))
    if spec.audit.on_progress is not None:
        parts[ON_PROGRESS] = _content_of_target(spec.audit.on_progress, Path(base))
    return {**notes, "parts": parts} if parts else notes


def progress_function(
    facts: Facts, *, resumed: Callable[[], bool], warn: Callable[[str], object]
) -> OnProgress | None:
    """Import the function that the spec's [audit] on_progress names.

    No draw depends on it. So an audit that has answers continues without it if its file was changed
    or cannot be imported.

    Args:
        facts: The journal's facts.
        resumed: Returns whether the audit has answers.
        warn: Called with a sentence if the audit continues without the function.

    Returns:
        The function, None if the spec names none.

    Raises:
        InputError: The function of an audit without answers cannot be imported.
    """
    name = ((facts.spec or {}).get("audit") or {}).get("on_progress")
    if name is None:
        return None
    base = Path(facts.base)
    try:
        if facts.parts.get(ON_PROGRESS) != _content_of_target(name, base):
            raise InputError(f"{ON_PROGRESS}: {name!r} was changed after the audit began")
        function = load_object(name, base, ON_PROGRESS)
        if isinstance(function, type) or not callable(function):
            raise unexpected(ON_PROGRESS, f"{name!r} to be a function", f"{function!r:.80}")
    except InputError as error:
        if not resumed():
            raise
        warn(f"{error}; the audit continues without it")
        return None
    return guarded(function, warn)


def spec_of(
    facts: Facts, where: str, otherwise: str, *, compared: bool = False
) -> tuple[Spec, Path]:
    """Return the spec that a journal keeps, and the folder that its paths start at.

    Nothing that it names is imported.

    Args:
        facts: The journal's facts.
        where: The journal, for messages.
        otherwise: Remedy for a journal without a spec.
        compared: Whether to accept a comparison, whose spec is that of its first model.

    Raises:
        InputError: The spec cannot be read.
        JournalError: There is none.
    """
    if facts.certificate is not None and facts.certificate.versus is not None and not compared:
        raise JournalError(
            f"{where}: holds a comparison of two models; the 'avtt versus' command that began it "
            "continues it, and 'avtt report', 'verify', 'gate' and 'export --disagreements' read it"
        )
    if facts.spec is None:
        raise JournalError(f"{where}: its data are in the Python that began it; {otherwise}")
    return parse_spec(facts.spec, where), Path(facts.base)


def check_program(facts: Facts, spec: Spec, where: str, *, judge: bool = True) -> list[str]:
    """Return the fields whose code was mended after it raised an error.

    Raise JournalError if the journal's spec, or other code of its space, has changed.

    Args:
        facts: The journal's facts.
        spec: Its spec.
        where: The journal, for messages.
        judge: Whether the oracle and the strategy will be run, too. Otherwise they may have
            changed.
    """
    if facts.program != _digest(facts.spec, facts.base):
        raise JournalError(
            f"{where}: its spec was altered after the audit began, and nothing of it was run; "
            "restore the journal, or begin a new audit with another --out"
        )
    apart, begun = () if judge else ("oracle.", "audit.", "certify."), facts.parts
    parts = code_parts(spec).items()
    failed = [begun.get(field) for field, (each, _) in parts if each.kind in facts.parts_failed]
    mended = []
    for field, content in contents(spec, Path(facts.base)).items():
        if begun.get(field) != content and begun.get(field) in failed:
            mended.append(field)
        elif not field.startswith(apart) and begun.get(field) != content:
            raise JournalError(
                f"{where}: {field} was changed after the audit began, and was not run: expected "
                f"{begun.get(field) or 'nothing'}, got {content or 'nothing'}; restore it, or "
                "begin a new audit with another --out"
            )
    return mended


def check_before_code(facts: Facts, spec: Spec, space: QuestionSpace) -> None:
    """Raise JournalError if space or settings are not those that the audit was begun with."""
    given = {name: getattr(spec.audit, name) for name in _COMPARED}
    known = {n: v for n, v in given.items() if v is not None and n in facts.begun_with}
    same_audit(facts, space, known)


def _digest(spec: Mapping[str, Any] | None, base: str) -> str:
    text = json.dumps([spec, base], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
