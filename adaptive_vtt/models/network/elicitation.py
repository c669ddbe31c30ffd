"""The mode in which P(yes) is asked for, as not every server supports every mode.

The first call for P(yes) tries the modes in turn. If the server refuses a mode, or ignores it so
that the reply lacks what was asked for, the next one is tried. The first mode that works is used
for the whole audit, and journaled: answers in two modes would be those of two models. A mode may
have a variant that asks for less, as "logprobs-5" does.

An option of requests that a server refuses is left out from then on.
"""

import re
from collections.abc import Iterable, Sequence

from ...errors import InputError
from ...journal.facts import WayFacts, Why

WORDS = "words"
"""The mode of questions in words, and of P(yes) if nothing else works."""
ALTERNATIVES = {"logprobs": 20, "logprobs-5": 5}
"""Mode -> log-probabilities per token: the most that OpenAI's protocol allows, or, if a server
refuses those, fewer."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""The two names of the field for the maximum length of a reply. If a server refuses one, the other
is sent: the field is never left out, as it bounds what a call can cost."""
IMAGE = "image_format"
_PATTERNS = {
    "max_tokens": r"max[_ ](?:completion[_ ])?(?:output[_ ])?tokens",
    "max_completion_tokens": r"max[_ ]completion[_ ]tokens",
    IMAGE: r"image[_ ](?:format|type)|media[_ ]?type|mime|\bpng\b|unsupported image",
    "logprobs": r"log[ _-]?prob|logit",
    "structured": r"response[_ ]format|json|schema|structured|tool",
}
"""Option or mode -> pattern of its name in refusals, if that differs from its own."""


def kind(mode: str) -> str:
    """Return a mode without its variant: "logprobs" for "logprobs-5"."""
    return mode.partition("-")[0]


def is_named(option: str, refusal: str) -> bool:
    """Return whether the text of a refusal names an option or mode."""
    pattern = _PATTERNS.get(option, re.escape(option).replace("_", "[_ ]"))
    return bool(re.search(pattern, refusal, re.IGNORECASE))


class Elicitation:
    """The choice of a mode, and of options to leave out.

    Args:
        names: Names of the modes, the best first.

    Attributes:
        settled: Whether the current mode has worked, so that it stays.
        without: Options that are left out of requests.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._untried = tuple(names), list(names)  # untried: the current one first
        self._failed: dict[str, Why] = {}
        self.settled = self._partly = False  # partly: some replies lack what was asked for
        self.without: tuple[str, ...] = ()

    @property
    def now(self) -> str:
        """The current mode."""
        return self._untried[0]

    def works(self, mode: str) -> None:
        """Settle on a mode, as a reply had what was asked for."""
        if not self.settled and mode in self._failed:  # an earlier reply lacked it
            del self._failed[mode]
            self._untried.insert(0, mode)
        self.settled = True

    def fall_back(self, mode: str, why: Why) -> bool:
        """Return whether to retry in the current mode after ``mode`` failed.

        Args:
            mode: The mode of the call that failed.
            why: "refused", or "missing": the reply lacked what was asked for.
        """
        if mode != self.now:  # another call has changed the mode since, or an earlier run did
            return mode in self._failed
        untried = self._untried[1:]
        if why == "missing":  # a variant that asks for less would lack it, too
            untried = [other for other in untried if kind(other) != kind(mode)]
        if self.settled or not untried:
            self._partly = self._partly or why == "missing"
            return False
        self._failed[mode], self._untried = why, untried
        return True

    def leave_out(self, options: Iterable[str]) -> None:
        """Leave options out of requests from now on, and start again with the first mode, as it may
        have been refused because of them."""
        self.without = tuple(dict.fromkeys([*self.without, *options]))
        self.restart()

    def restart(self) -> None:
        """Return to the first mode, unless a mode is settled."""
        if not self.settled:
            self._untried, self._failed = list(self._names), {}

    def facts(self) -> WayFacts | None:
        """Return the mode and the refused options for the journal; None if nothing is settled."""
        settled = self.settled or self._partly
        if not (settled or self.without):
            return None
        return WayFacts(
            yes_from=self.now if settled else "",
            instead=self._failed if settled else {},
            partly=self._partly,
            without=self.without,
        )

    def keep_to(self, facts: WayFacts) -> None:
        """Adopt the mode of a resumed audit; raise InputError if the option excludes it."""
        self.without = facts.without
        if not facts.yes_from:
            return
        if facts.yes_from not in self._names:
            expected = "expected the mode in which this audit was asked before"
            was, now = kind(facts.yes_from), kind(self._names[0])
            remedy = "begin a new audit to ask in another mode"
            raise InputError(f"model.yes_from: {expected}, {was!r}, got {now!r}; {remedy}")
        self._untried = list(self._names[self._names.index(facts.yes_from) :])
        self._failed = {mode: why for mode, why in facts.instead.items() if mode in self._names}
        self.settled, self._partly = True, facts.partly
