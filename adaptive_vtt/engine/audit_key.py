"""The key of an audit, which all its random choices depend on.

A certificate is valid because each draw is random given everything that its proposal and its
predictions depend on. Two audits that share random numbers can break that, and nobody would notice:

- A prior journal has the losses of the calls that the earlier audit drew. If the new audit draws
  the same calls, its predictions know the losses of exactly these calls. Every correction L - F is
  then too small, and the mean is biased.
- A model is retrained on its failures, then audited again. If the same calls are drawn, only
  corrected questions are asked, and no failure shows up however many are left.

So every random stream for candidates or draws is keyed by a hash of the seed and of:

- the settings, the space, the metadata of its samples, the targets with their weights;
- the model with its version, every proxy with its content;
- the features that the dataset has by itself;
- the prior journal, or those of a cohort, with its key and all its answers.

A user's code may depend on anything, such as a file that was fitted to an earlier audit's losses.
So the key has fresh entropy if the strategy, the surrogate, the oracle or a relation is not from
this package, or if a proxy's content is not known. The entropy is journaled, so that a resumed
audit repeats its draws. It follows that:

1. An audit with a prior journal hashes that journal's content. So its draws are fresh given that
   content, even if both audits have the same seed. Its key can equal the prior journal's only if a
   journal was given as its own prior, which is refused.
2. Otherwise two keys are equal only if the same audit, of this package's parts alone, was begun
   twice; it repeats the draws on purpose. One case is left to the user: a model that was changed
   without a new name, version or content, under the same explicit seed. Without an explicit seed,
   each audit has fresh entropy.

Half-width, limit and margin enter as they were when the audit began (the fact "goal"). Without
them, audits of one seed to seven half-widths would draw the same calls, and be wrong together.
``resume`` may change them and keeps the draws. Budget and cap on cost do not enter: they decide
when an audit ends, not what it draws.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError, JournalError
from ..journal.facts import Facts, ReplayFacts
from ..models.base import ModelUnderTest
from ..models.versions import CONTENT, changed_content, changed_file, version_of, without_hashes
from ..space import QuestionSpace
from ..types import JsonObject
from ..utils.other_code import Completed
from .tensors import hashed

SEED_BITS = 53
"""Bits of a fresh seed: every JSON parser reads whole numbers of this size exactly."""
GIVEN = "given, "
"""Prefix of the hash of features that a dataset has by itself; others follow from the space."""
MAX_HASHED = 1_000_000
"""Most samples whose metadata is hashed into the audit's key; of more, evenly spread ones."""


def full_name(model: str, version: str | None) -> str:
    """Return a model's name and version, without hashes, which no reader recognises."""
    readable = without_hashes(version)
    return f"{model} {readable}" if readable else model


def seed_for(seed: int | None, facts: Facts | None) -> int:
    """Return the seed as given, else the journal's, else a fresh one."""
    if seed is not None:
        return seed
    return fresh_seed() if facts is None else facts.settings.seed


def fresh_seed() -> int:
    """Return a random seed that no other audit has."""
    return secrets.randbits(SEED_BITS)


def is_custom(part: object) -> bool:
    """Return whether a class, a function or an object is code from outside this package.

    A partial function is custom if the function or any of its arguments is.
    """
    if isinstance(part, partial):
        values = (part.func, *part.args, *part.keywords.values())
        return any(is_custom(value) for value in values if value is not None)
    if isinstance(part, Completed):
        return is_custom(part.plain)
    return str(getattr(part, "__module__", "")).partition(".")[0] != __name__.partition(".")[0]


def audit_key(**parts: Any) -> str:
    """Return a hash, 32 hexadecimal digits, of ``parts`` that JSON can hold."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Origin:
    """An audit's key and what it was made from.

    - ``key``: the key, 32 hexadecimal digits.
    - ``version``: the model's; ``changed``: True if its content differs from the journal's.
    - ``goal``: option -> half-width, limit or margin with which the audit began.
    - ``replay``: the earlier audit whose draws come first; None: there is none.
    - ``entropy``: a fresh number, if a part is custom; None: none is.
    """

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
        """Return the origin of a new audit, or of one that is resumed.

        Args:
            facts: Facts of the journal that is resumed; None: a new audit.
            model: The model.
            priors: Keys of the audits that predictions are made from.
            goal: Option -> half-width, limit or margin, of a new audit.
            replay: The earlier audit whose draws come first; None: there is none.
            custom: True if a part is the user's code.
            features: The features of a new audit (``features_used``).
            **parts: All else that the key depends on.

        Raises:
            InputError: If one of ``priors``, or ``replay``, has this audit's key.
            JournalError: If the journal began with another replay, or with another model file.
        """
        version, changed = _version_for(model, facts)
        entropy = fresh_seed() if facts is None and custom else None
        if facts is not None:  # features may have changed since; the key is that of the beginning
            entropy, features, goal = facts.entropy, facts.features, facts.goal
        own_features = features if features is not None and features.startswith(GIVEN) else None
        parts |= {"entropy": entropy, "features": own_features, "goal": dict(goal) or None}
        known = {name: value for name, value in parts.items() if value is not None}
        key = audit_key(**known, version=version)
        earlier = {*priors, None if replay is None else replay.key} - {None}
        if earlier & {key, None if facts is None else facts.key}:
            raise InputError(
                "prior journal or cohort: expected audits with draws of their own, got one with "
                "the key of this audit, so predictions would know the draws to come; give another "
                "seed, or none"
            )
        if facts is not None and facts.replay != replay:
            raise JournalError(
                f"journal: was begun with {_in_words(facts.replay)}, not with {_in_words(replay)}: "
                "journal_a was continued since, or is another; give it as it was then"
            )
        return cls(key, version, changed, goal, replay, entropy)

    def facts(self) -> JsonObject:
        """Return the facts of a new journal that the key was made from."""
        facts: JsonObject = {"key": self.key, "model_version": self.version}
        facts["goal"] = dict(self.goal)
        facts |= {} if self.entropy is None else {"entropy": self.entropy}
        return facts if self.replay is None else facts | {"replay": self.replay.model_dump()}

    def changes(self, facts: Facts) -> JsonObject:
        """Return the fact of a resumed journal that says whether the model ever changed."""
        return {"model_changed": self.changed or facts.model_changed}


def _in_words(replay: ReplayFacts | None) -> str:
    if replay is None:
        return "no draws of an earlier audit"
    return f"{replay.draws} draws of {replay.head[:8]}"


def same_key(facts: Facts, key: str) -> None:
    """Raise JournalError if the journal's draws come from another key."""
    if facts.key != key:
        raise JournalError(
            "journal: was begun with another key: the targets, a proxy, the prior journal or the "
            "model's version changed since; resume with what it was begun with, or begin a new "
            "audit"
        )


def _version_for(model: ModelUnderTest, facts: Facts | None) -> tuple[str | None, bool]:
    """Return the version that enters the key, and whether the model's content changed since.

    A changed content is no error, as somebody may have fixed a crash: the audit continues, and its
    report names the change. Raises JournalError if a file changed that the model's options name.
    """
    now, then = version_of(model), None if facts is None else facts.model_version
    by_content = all((version or "").startswith(CONTENT) for version in (now, then))
    changed = None if facts is None else changed_file(now, then)
    if by_content and changed is None:
        changed = changed_content(model, now, then)
    if changed is not None:
        raise JournalError(
            f"journal: the file {changed!r} that the model is made of changed since the audit "
            "began, so answers would mix two models; restore it, or begin a new audit, with "
            "version='...' in [model] if the model only writes it"
        )
    if now == then or not by_content:
        return now, False
    return then, True


def features_used(space: QuestionSpace) -> str:
    """Return, for the journal, by which features a surrogate knows which source images are alike.

    That is a hash of the dataset's features, "thumbnails", or "truths" if images are not looked at.
    """
    features = space.dataset.features
    if features is not None:
        return GIVEN + hashed(np.asarray(features, np.float64))[:16]
    if not space.dataset.has_images:
        return "truths"
    from ..surrogates.features import MAX_IMAGES

    return "thumbnails" if len(space.dataset) <= MAX_IMAGES else "truths"


def metadata_used(space: QuestionSpace) -> str | None:
    """Return a hash of the dataset's metadata; None if it has none.

    It is part of the audit's key: targets and slices are chosen by metadata, which may be a result
    of an earlier audit.
    """
    dataset = space.dataset
    if not dataset.metadata_columns:
        return None
    samples = np.linspace(0, len(dataset) - 1, min(len(dataset), MAX_HASHED)).astype(np.int64)
    rows = np.ascontiguousarray(dataset.profile_row(samples))
    digest = hashlib.blake2b(rows.tobytes(), digest_size=8)
    for column in dataset.metadata_columns:
        digest.update(repr((column, dataset.metadata_values(column).tolist())).encode())
    return digest.hexdigest()
