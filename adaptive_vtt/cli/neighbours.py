"""Other runs beside a new one, and whether they used its seed: then both may share draws."""

from contextlib import closing
from pathlib import Path

from ..errors import JournalError
from ..journal import read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL

MAX = 50
"""Folders that are looked into, at most."""


def neighbours(out: Path, seed: int | None) -> dict[str, str]:
    """Fingerprints of the spaces that runs beside ``out`` asked about with ``seed``, each with
    the name of such a run; {} where no seed is given. Reads journals, writes nothing."""
    if seed is None or not out.parent.is_dir():
        return {}
    folders = sorted(f for f in out.parent.iterdir() if (f / JOURNAL).is_file())
    found: dict[str, str] = {}
    for folder in folders[:MAX]:
        if folder.resolve() != out.resolve():
            space, used = _facts(folder / JOURNAL)
            if space is not None and used == seed:
                found.setdefault(space, folder.name)
    return found


def warning(name: str) -> str:
    """What to say of a run that used the same seed on the same space."""
    return (
        f"run {name!r} beside this one audited the same questions with the same seed: if anything "
        "here was changed by what it found (a model mended, a proxy fitted), draws may be shared "
        "and no certificate holds; give another seed, or none"
    )


def _facts(path: Path) -> tuple[str | None, int | None]:
    """A journal's space and seed; None for whatever cannot be read."""
    try:
        with closing(read_journal(path)) as journal:
            facts = read_facts(journal.facts())
        return facts.space.fingerprint, facts.settings.seed
    except JournalError:
        return None, None
