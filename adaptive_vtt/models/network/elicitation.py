"""How P(yes) is asked for, as not every server takes every mode.

The first call that wants P(yes) tries the modes in turn. If the server refuses a mode, or ignores
it, so that the reply lacks what was asked for, the next one is tried. The first mode that works is
kept for good, and journaled: answers from two modes would be those of two models. A mode may have a
variant, "logprobs-5": the same mode, asking for less.

Options of requests are treated alike: what a server refuses is left out from then on.
"""

import re
from collections.abc import Iterable, Sequence

from ...errors import InputError
from ...journal.facts import WayFacts, Why

WORDS = "words"
"""The mode of questions in words, and of P(yes) if nothing else works."""
ALTERNATIVES = {"logprobs": 20, "logprobs-5": 5}
"""Log-probabilities per token that are asked for: the most that OpenAI's protocol allows, or, if
those are refused, as many as stingier servers give."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the longest reply: a server that refuses one is given the other, never none, as that
bounds what a call can cost."""
IMAGE = "image_format"
_PATTERNS = {
    "max_tokens": r"max[_ ](?:completion[_ ])?(?:output[_ ])?tokens",
    "max_completion_tokens": r"max[_ ]completion[_ ]tokens",
    IMAGE: r"image[_ ](?:format|type)|media[_ ]?type|mime|\bpng\b|unsupported image",
    "logprobs": r"log[ _-]?prob|logit",
    "structured": r"response[_ ]format|json|schema|structured|tool",
}
"""Names in refusals of an option or mode, where they differ from the option's own."""


def kind(mode: str) -> str:
    """Return the mode of a variant, or the mode itself."""
    return mode.partition("-")[0]


def is_named(option: str, refusal: str) -> bool:
    """Return whether the text of a refusal is about an option, or a mode."""
    pattern = _PATTERNS.get(option, re.escape(option).replace("_", "[_ ]"))
    return bool(re.search(pattern, refusal, re.IGNORECASE))


class Elicitation:
    """Modes by their ``names``, the best first; the last is taken if all others failed.

    ``now``: the current mode; ``settled``: whether it worked; ``without``: options left out of
    requests.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._left = tuple(names), list(names)
        self._instead: dict[str, Why] = {}
        self.settled = self._partly = False
        self.without: tuple[str, ...] = ()

    @property
    def now(self) -> str:
        return self._left[0]

    def works(self, mode: str) -> None:
        """Settle on a mode, as a reply had what was asked for."""
        if not self.settled and mode in self._instead:  # though another reply had not
            del self._instead[mode]
            self._left.insert(0, mode)
        self.settled = True

    def fall_back(self, mode: str, why: Why) -> bool:
        """Return whether to retry in the current mode after ``mode`` failed.

        Args:
            mode: The mode of the call that failed.
            why: "refused", or "missing": the reply lacked what was asked for.
        """
        if mode != self.now:  # sent before another mode was tried, or read of an earlier run
            return mode in self._instead
        left = [other for other in self._left[1:] if why == "refused" or kind(other) != kind(mode)]
        if self.settled or not left:
            self._partly = self._partly or why == "missing"
            return False
        self._instead[mode], self._left = why, left
        return True

    def leave_out(self, options: Iterable[str]) -> None:
        """Leave options out of requests from now on, and restart, as the first mode may have been
        refused because of them."""
        self.without = tuple(dict.fromkeys([*self.without, *options]))
        self.restart()

    def restart(self) -> None:
        """Return to the first mode, unless one has worked."""
        if not self.settled:
            self._left, self._instead = list(self._names), {}

    def facts(self) -> WayFacts | None:
        """Return the mode and the refused options for the journal; None if nothing is settled."""
        settled = self.settled or self._partly
        if not (settled or self.without):
            return None
        return WayFacts(
            yes_from=self.now if settled else "",
            instead=self._instead if settled else {},
            partly=self._partly,
            without=self.without,
        )

    def keep_to(self, facts: WayFacts) -> None:
        """Take the mode of a resumed audit; raise InputError if it is none of these."""
        self.without = facts.without
        if not facts.yes_from:
            return
        if facts.yes_from not in self._names:
            expected = "expected the mode in which this audit was asked before"
            was, now = kind(facts.yes_from), kind(self._names[0])
            then = "begin a new audit to ask in another mode"
            raise InputError(f"model.yes_from: {expected}, {was!r}, got {now!r}; {then}")
        self._left = list(self._names[self._names.index(facts.yes_from) :])
        self._instead = {mode: why for mode, why in facts.instead.items() if mode in self._names}
        self.settled, self._partly = True, facts.partly
