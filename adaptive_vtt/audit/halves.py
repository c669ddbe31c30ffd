"""Known answers of one model of a pair: from an interrupted pair, or from an earlier audit.

A pair is one call, which is journaled once both models have answered. As the first answer has been
paid for by then, it is stored in a file (``HalfStore``), and a comparison that resumes after a
crash does not ask again. If model A was audited before, its answers are taken from that audit
(``earlier_audit``).
"""

import json
import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..cohort import Known
from ..engine.judge import values_of
from ..engine.proposals import Replay
from ..engine.settings import describe_oracle
from ..errors import AvttError, JournalError, one_line, unexpected
from ..journal import Journal, SQLiteJournal
from ..journal.answer_json import from_json, to_json
from ..journal.facts import begun_facts, read_facts
from ..journal.files import connect, refuse_other_names
from ..models.base import ModelUnderTest, adapted_model
from ..models.checking import name_of
from ..models.pair import Halves, Reply
from ..models.versions import version_of
from ..oracles.paired import EARLIER
from ..space import QuestionSpace
from ..types import Answer, CallMode, Indices, Prompt, Unanswered

_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (about TEXT, side TEXT, prompt TEXT, time INTEGER, answer"
    " TEXT, cost REAL, unconfirmed REAL, reply TEXT, PRIMARY KEY (about, side, prompt, time))"
)
_MADE = [("answers", _TABLE.replace("IF NOT EXISTS ", "")), ("sqlite_autoindex_answers_1", None)]


def _key_of(sample: str, relation: str, severity: int, concepts: tuple[str, ...]) -> str:
    """Return the text that identifies a prompt."""
    return json.dumps([sample, relation, severity, list(concepts)])


class HalfStore(Halves):
    """Store of answers by one model that wait for the other model's.

    Args:
        path: The file, created if it is missing; None: memory.
        about: Identifies models and questions; stored answers about others are ignored.
        answered: Key of a prompt -> number of its pairs in the journal, with repeat probes. Answers
            in the file that belong to these pairs are deleted.
        known: Key of a prompt -> model A's answer in an earlier audit. Each is free, and used only
            once, so that a repeat probe asks A again.

    Raises:
        JournalError: The file is not of this kind.
    """

    def __init__(
        self,
        path: Path | None,
        about: str,
        answered: Mapping[str, int] | None = None,
        known: Mapping[str, Reply] | None = None,
    ) -> None:
        self._lock, self._about, self._path = threading.Lock(), about, path
        self._pairs = Counter(answered or {})  # key of a prompt -> complete pairs
        self._waiting: dict[tuple[str, str], Reply] = {}  # by side and key
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                refuse_other_names(path)
            self._file = connect(path or Path(":memory:"))
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute(_TABLE)
            tables = self._file.query("SELECT name, sql FROM sqlite_master").fetchmany(3)
            if tables != _MADE:
                raise ValueError(f"the tables {[name for name, _ in tables]}")
            self._recall()
        except (sqlite3.Error, OSError, AvttError, ValueError, TypeError, RecursionError) as error:
            raise JournalError(
                f"{path}: expected the answers of an interrupted pair, got something else "
                f"({one_line(error)}); move it away to continue, and its answers are asked again"
            ) from None
        fresh = {key: reply for key, reply in (known or {}).items() if key not in self._pairs}
        self._waiting |= {("a", key): reply for key, reply in fresh.items()}

    def take(self, side: str, prompt: Prompt) -> Reply | None:
        """Return the answer of one model, until the pair is complete."""
        return self._waiting.get((side, _key(prompt)))

    def keep(self, side: str, prompt: Prompt, reply: Reply) -> None:
        """Write an answer to the disk. Raise JournalError if that fails."""
        key = _key(prompt)
        if self._waiting.get((side, key)) is reply:
            return  # it was taken from this store
        values = [*map(to_json, reply.values)] if isinstance(reply, Answer) else reply.reason
        paid = json.dumps(values), reply.cost, reply.unconfirmed, reply.reply
        row = (self._about, side, key, self._pairs[key], *paid)
        try:
            with self._lock:
                self._file.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: cannot be written: {one_line(error)}") from None
        self._waiting[side, key] = reply

    def done(self, prompt: Prompt) -> None:
        """Drop the answers to a prompt that both models answered, so that a repeat probe asks them
        again."""
        key = _key(prompt)
        self._pairs[key] += 1
        for side in ("a", "b"):
            self._waiting.pop((side, key), None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _recall(self) -> None:
        """Read the oldest answer to each prompt that is not journaled, and delete journaled ones.

        ``time`` is the number of complete pairs of the prompt when the answer was stored.
        """
        query = (
            "SELECT side, prompt, time, answer, cost, unconfirmed, reply FROM answers "
            "WHERE about = ? ORDER BY time"
        )
        journaled = []
        for side, key, time, values, *paid in self._file.execute(query, (self._about,)).fetchall():
            if time < self._pairs[key]:
                journaled.append((self._about, key, time))
            else:
                self._waiting.setdefault((side, key), _read(values, paid, key))
        drop = "DELETE FROM answers WHERE about = ? AND prompt = ? AND time = ?"
        self._file.executemany(drop, journaled)


def _read(stored: Any, paid: list[Any], key: str) -> Reply:
    """Return an answer that ``keep`` wrote; raise ValueError or the like for another row."""
    *costs, reply = paid
    if not all(isinstance(cost, float) and 0 <= cost < math.inf for cost in costs):
        raise ValueError(f"a cost of {paid!r}")
    if not isinstance(reply, str):
        raise ValueError("a reply that is no text")
    values = json.loads(stored)
    if isinstance(values, str):
        return Unanswered(values, *paid)
    if not isinstance(values, list) or len(values) != len(json.loads(key)[3]):
        raise ValueError("answers to other questions")
    return Answer(tuple(from_json(value, "halves") for value in values), *paid)


def _key(prompt: Prompt) -> str:
    return _key_of(prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts)


# -- an earlier audit of model A -----------------------------------------------------------------


@dataclass(frozen=True)
class Earlier:
    """Answers of model A in an earlier audit; the defaults stand for none.

    Attributes:
        answers: Key of a prompt -> model A's answer.
        asked: Numbers of the questions that these answers are about, (a,), ascending.
        losses: The questions that count, with their losses.
        about: Identifies that audit and its use, in the settings of the comparison.
        replay: Its draws, if they are to be replayed.
    """

    answers: Mapping[str, Reply] = field(default_factory=dict)
    asked: Indices | None = None
    losses: Known | None = None
    about: str | None = None
    replay: Replay | None = None


def earlier_audit(
    space: QuestionSpace, a: ModelUnderTest, journal: Journal, where: str, *, replayed: bool
) -> Earlier:
    """Return the answers of an earlier audit of model A.

    Args:
        space: The questions of the comparison.
        a: Model A.
        journal: The journal of that audit, which must stay open for a replay.
        where: Its path, for errors.
        replayed: Whether its draws are replayed.

    Returns:
        Its answers. Calls with an excluded answer are left out, as the journal does not store such
        an answer in a form that could be judged again.

    Raises:
        InputError: That audit had another space, model, version, template or oracle, or its answers
            were masks, which journals do not store.
    """
    facts, model = read_facts(journal.facts()), adapted_model(a)
    about_a, mode = f"journal_a {where!r}", facts.settings.answers
    before = facts.begun_with
    pairs = {
        "space": (facts.space.fingerprint, space.fingerprint),
        "model": (facts.settings.model, name_of(a)),
        "model's version": (facts.model_version, version_of(a)),
        "prompt template": (before.get("template"), model.template_hash),
        "oracle": (before.get("oracle"), describe_oracle(space)),
        "answers per call": (mode, model.answers),
    }
    for name, (then, now) in pairs.items():
        if then != now:
            got = f"{then!r} then and {now!r} now"
            hint = "with use = 'proxy' its answers are hints alone"
            raise unexpected(about_a, f"an audit of the same {name}", got, hint)
    if space.oracle.judges_masks:
        raise unexpected(
            about_a,
            "answers that journals keep",
            "masks, which are kept as scores alone",
            "with use = 'proxy' their losses are hints",
        )
    calls = [call for call in journal.calls() if not any(row.excluded for row in call.answers)]
    answers = {
        _call_key(space, mode, call.call): Answer(values_of(space, mode, call)) for call in calls
    }
    rows = sorted((row for call in calls for row in call.answers), key=lambda row: row.question)
    judged = [(row.question, row.loss) for row in rows if row.loss is not None]
    questions, losses = np.array(judged, float).reshape(-1, 2).T
    # The text ``about`` determines the random numbers of the comparison. In a replay it must not
    # depend on the last losses of A, on which the head of a journal depends.
    replay = Replay(journal, facts, where) if replayed else None
    about = f"condition {journal.head}" if replay is None else f"replay {replay.facts.key}"
    asked = np.array([row.question for row in rows], np.int64)
    return Earlier(answers, asked, Known(questions.astype(np.int64), losses), about, replay)


def _call_key(space: QuestionSpace, answers: CallMode, call: int) -> str:
    """Return the key of a call's prompt."""
    image = space.numbering.image_of(call) if answers == "one" else call
    sample, variant = space.numbering.image_parts(image)
    concept = space.asked[space.asked_by[call % len(space.concepts)]]
    concepts = (concept,) if answers == "one" else space.asked
    change = space.variants[variant]
    return _key_of(space.dataset.sample_id(sample), change.relation.name, change.severity, concepts)


def pairs_in(space: QuestionSpace, path: Path) -> Mapping[str, int]:
    """Return, by the key of a prompt, the number of its pairs in a journal, with repeat probes."""
    if not path.is_file():
        return {}
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        facts = begun_facts(journal.facts())
        if facts is None:
            return {}
        calls = [row.call for row in journal.calls()]
        calls += [-1 - row.source for row in journal.sources() if row.repeat_probe]
        return Counter(_call_key(space, facts.settings.answers, call) for call in calls)


def refuse_other_earlier(journal: Path, options: Sequence[str], journal_a: Path | str) -> None:
    """Raise JournalError if the earlier audit has changed since the comparison began.

    Args:
        journal: Journal of the comparison.
        options: The present options of its oracle; one of them identifies the earlier audit.
        journal_a: Journal of the earlier audit.
    """
    with closing(SQLiteJournal(journal, read_only=True)) as begun:
        facts = begun_facts(begun.facts())
    oracle = (facts.begun_with.get("oracle") or {}) if facts else {}
    before = oracle.get("options", [])

    def parted(all_options: Sequence[str]) -> tuple[list[str], list[str]]:
        earlier = [option for option in all_options if option.startswith(EARLIER)]
        return earlier, [option for option in all_options if option not in earlier]

    (then, others_then), (now, others_now) = parted(before), parted(options)
    same_use = [option.split()[:-1] for option in then] == [option.split()[:-1] for option in now]
    if then != now and same_use and others_then == others_now:
        raise JournalError(
            f"journal_a {str(journal_a)!r}: this run was continued since the comparison began, or "
            "is another one; give a copy of it as it was (--journal-a), or begin another "
            "comparison with a new --out"
        )
