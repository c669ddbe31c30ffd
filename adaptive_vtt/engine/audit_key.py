"""The key of an audit: what all its random choices follow from.

A certificate holds because a draw is random given everything that entered its proposal and its
predictions. Two audits that share a random stream can break that without anybody noticing:

- A prior journal holds the losses of the calls that the earlier audit drew. If the new audit
  draws the same calls again, its predictions know the losses of the very calls to come, and of
  no others: every correction L - F is then too small, and the mean too low or too high.
- A model is mended where it failed, then audited again. If the same calls are drawn again, only
  mended questions are asked, and no failure shows up however many are left.

So every stream that decides candidates or draws is keyed by a hash of the seed and of all that the
audit is made of: the settings, the space, the metadata of its samples, the targets with their
weights, the model with its version, every proxy with its content, the features that the dataset
brings, and the prior journal, or those of a cohort, with its own key and all its answers. What
code of the user's own follows from is not known: it may read a file that was fitted to an earlier
audit's losses. So an audit with a strategy, a surrogate, an oracle or a relation that is not this
package's, or a proxy of unknown content, has fresh entropy in its key, too, journaled so that it
goes on with the same draws. From this follows:

1. An audit that uses a prior journal hashes that journal's content, so its draws are fresh
   given that content even where both audits have the same seed. Its key could equal the prior
   journal's only if a hash contained itself; equal keys mean that a journal was given as its
   own prior, and are refused.
2. Equal keys otherwise come from the very same audit begun twice, of this package's parts alone,
   which repeats the draws on purpose. One case is left to the user: a model that was changed
   without a new name, version or content, under the same explicit seed. Without an explicit seed
   it cannot happen, as each audit then has fresh entropy.

Half-width, limit and margin are those that the audit began with (the fact "goal"): audits of one
seed to seven half-widths would else draw the same calls, and be wrong together. ``resume`` may
change them without other draws. Budget and cap on cost are left out: they say when an audit ends,
and the draws up to there are the same.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import InputError, JournalError
from ..journal.facts import Facts, ReplayFacts
from ..models.base import ModelUnderTest
from ..models.versions import CONTENT, changed_content, changed_file, version_of, without_hashes
from ..types import JsonObject
from ..utils.other_code import Completed

SEED_BITS = 53
"""Fresh seeds are whole numbers that every reader of JSON keeps exact."""
GIVEN = "given, "
"""Before a hash of the features that a dataset brings; without one they follow from the space."""


def full_name(model: str, version: str | None) -> str:
    """A model's name and version, but for one that is a hash, which no reader recognises."""
    stated = without_hashes(version)
    return f"{model} {stated}" if stated else model


def seed_for(seed: int | None, facts: Facts | None) -> int:
    """The seed as given, else the journal's, else fresh entropy."""
    if seed is not None:
        return seed
    return fresh_seed() if facts is None else facts.settings.seed


def fresh_seed() -> int:
    """A seed that no other audit has."""
    return secrets.randbits(SEED_BITS)


def is_custom(part: object) -> bool:
    """Whether a class, a function or an object of one is code from outside this package; of a
    partial function, whether that or anything it is given is."""
    if isinstance(part, partial):
        given = (part.func, *part.args, *part.keywords.values())
        return any(is_custom(each) for each in given if each is not None)
    if isinstance(part, Completed):
        return is_custom(part.plain)
    return str(getattr(part, "__module__", "")).partition(".")[0] != __name__.partition(".")[0]


def audit_key(**parts: Any) -> str:
    """32 hexadecimal digits that follow from ``parts``, which JSON can hold."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Origin:
    """What an audit's random choices follow from: ``key``. ``version`` is the model's;
    ``changed`` whether its content differs from what the journal says; ``replay``: the earlier
    audit whose draws come first; ``entropy``: fresh, where a part is custom; ``goal``: what was to
    be certified when it began."""

    key: str
    version: str | None
    changed: bool
    goal: Mapping[str, float]
    replay: ReplayFacts | None = None
    entropy: int | None = None

    @classmethod
    def of(
        cls,
        facts: Facts | None,
        model: ModelUnderTest,
        priors: Sequence[str | None],
        goal: Mapping[str, float],
        replay: ReplayFacts | None = None,
        *,
        custom: bool = False,
        features: str | None = None,
        **parts: Any,
    ) -> "Origin":
        """Of an audit that goes on with ``facts`` (None: a new one), whose predictions know the
        audits of the keys ``priors``, after the draws of ``replay``; ``custom``: whether some part
        is code of the user's own. ``features`` are those of now: an audit goes on with other ones,
        by its key of then.

        Raises InputError where the key of either is this audit's own, JournalError where the
        journal was begun after other draws.
        """
        version, changed = _version_for(model, facts)
        entropy = fresh_seed() if facts is None and custom else None
        if facts is not None:
            entropy, features, goal = facts.entropy, facts.features, facts.goal
        brought = features if features is not None and features.startswith(GIVEN) else None
        parts |= {"entropy": entropy, "features": brought, "goal": dict(goal) or None}
        known = {name: value for name, value in parts.items() if value is not None}
        key = audit_key(**known, version=version)
        for prior in (*priors, None if replay is None else replay.key):
            _check_prior(prior, key, facts)
        _check_replay(replay, facts)
        return cls(key, version, changed, goal, replay, entropy)

    def facts(self) -> JsonObject:
        """For a new journal."""
        facts: JsonObject = {"key": self.key, "model_version": self.version}
        facts["goal"] = dict(self.goal)
        facts |= {} if self.entropy is None else {"entropy": self.entropy}
        return facts if self.replay is None else facts | {"replay": self.replay.model_dump()}

    def changes(self, facts: Facts) -> JsonObject:
        """For a journal that is gone on with: whether the model ever changed."""
        return {"model_changed": self.changed or facts.model_changed}


def _check_prior(prior: str | None, key: str, facts: Facts | None) -> None:
    if prior is not None and prior in (key, None if facts is None else facts.key):
        raise InputError(
            "prior journal or cohort: expected audits with draws of their own, got one with the "
            "key of this audit, so predictions would know the draws to come; give another seed, or "
            "none"
        )


def _check_replay(replay: ReplayFacts | None, facts: Facts | None) -> None:
    if facts is not None and facts.replay != replay:
        texts = [
            "no draws of an earlier audit" if r is None else f"{r.draws} draws of {r.head[:8]}"
            for r in (facts.replay, replay)
        ]
        raise JournalError(
            f"journal: was begun with {texts[0]}, not with {texts[1]}: journal_a went on since, or "
            "is another; give it as it was then"
        )


def same_key(facts: Facts, key: str) -> None:
    """Raises JournalError where the journal's draws come from another key."""
    if facts.key != key:
        raise JournalError(
            "journal: was begun with another key: the targets, a proxy, the prior journal or the "
            "model's version changed since; go on with what it was begun with, or begin a new audit"
        )


def _version_for(model: ModelUnderTest, facts: Facts | None) -> tuple[str | None, bool]:
    """The version that goes into the key, and whether the model's content changed since the
    journal was begun: a crash may have been mended, so the audit goes on, and says so. Raises
    JournalError where a file that its options name changed."""
    now, then = version_of(model), None if facts is None else facts.model_version
    both = all((version or "").startswith(CONTENT) for version in (now, then))
    name = None if facts is None else changed_file(now, then)
    if both and name is None:
        name = changed_content(model, now, then)
    if name is not None:
        raise JournalError(
            f"journal: the file {name!r} that the model is made of changed since the audit began, "
            "so answers would be those of two models; restore it, or begin a new audit, with "
            "version = '...' in [model] where the model only writes this file"
        )
    if now == then or not both:
        return now, False
    return then, True
