"""In which way P(yes) is asked for, where not every server takes every way.

The first call that wants P(yes) finds out. A way that the server refuses gives place to the next;
so does one that the server passes over in silence, so that the reply lacks what was asked for.
The first way that works is kept for good, and journaled: answers got in two ways would be those of
two models. A name may have a variant, "logprobs-5": the same way, asked for with less.

Options of requests go the same way: what a server refuses is left out from then on.
"""

import re
from collections.abc import Iterable, Sequence

from ...errors import InputError
from ...journal.facts import WayFacts, Why

WORDS = "words"
"""The way in which questions in words are asked, and P(yes) where nothing else works."""
ALTERNATIVES = {"logprobs": 20, "logprobs-5": 5}
"""Log-probabilities per token that are asked for: the most that OpenAI's protocol allows, or, where
those are refused, as many as stingier servers give."""


class Elicitation:
    """Ways to P(yes) by their ``names``, the best first; the last where all others failed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._left = tuple(names), list(names)
        self._instead: dict[str, Why] = {}
        self.settled = self._partly = False
        self.without: tuple[str, ...] = ()

    @property
    def now(self) -> str:
        """The way in which to ask."""
        return self._left[0]

    def works(self, way: str) -> None:
        """A reply had what was asked for in this way."""
        if not self.settled and way in self._instead:  # though another reply had not
            del self._instead[way]
            self._left.insert(0, way)
        self.settled = True

    def gives_way(self, way: str, why: Why) -> bool:
        """Whether what was asked for in ``way`` in vain is to be asked in the way that is ``now``.

        ``missing``: the reply had not what was asked for.
        """
        if way != self.now:  # sent before another way was found, or read of an earlier run
            return way in self._instead
        rest = [one for one in self._left[1:] if why == "refused" or kind(one) != kind(way)]
        if self.settled or not rest:
            self._partly = self._partly or why == "missing"
            return False
        self._instead[way], self._left = why, rest
        return True

    def leaves_out(self, options: Iterable[str]) -> None:
        """Leave these options out of requests from now on; begin again with the first way, which
        may have been refused for their sake."""
        self.without = tuple(dict.fromkeys([*self.without, *options]))
        self.begins_again()

    def begins_again(self) -> None:
        """Ask in the first way again, unless one was found."""
        if not self.settled:
            self._left, self._instead = list(self._names), {}

    def facts(self) -> WayFacts | None:
        """For the journal; None while nothing is settled."""
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
        """The way in which an audit that goes on was asked before. Raises InputError where that is
        none of these."""
        self.without = facts.without
        if not facts.yes_from:
            return
        if facts.yes_from not in self._names:
            raise InputError(
                f"model.yes_from: expected the way in which this audit was asked before, "
                f"{kind(facts.yes_from)!r}, got {kind(self._names[0])!r}; begin a new audit to ask "
                "otherwise"
            )
        self._left = list(self._names[self._names.index(facts.yes_from) :])
        self._instead = {w: why for w, why in facts.instead.items() if w in self._names}
        self.settled, self._partly = True, facts.partly


def kind(way: str) -> str:
    """The way of which this is a variant, or itself."""
    return way.partition("-")[0]


LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the longest reply: a server that refuses one is given the other, never none, as that
bounds what a call can cost."""
IMAGE = "image_format"
_WORDS = {
    "max_tokens": r"max[_ ](?:completion[_ ])?(?:output[_ ])?tokens",
    "max_completion_tokens": r"max[_ ]completion[_ ]tokens",
    IMAGE: r"image[_ ](?:format|type)|media[_ ]?type|mime|\bpng\b|unsupported image",
    "logprobs": r"log[ _-]?prob|logit",
    "structured": r"response[_ ]format|json|schema|structured|tool",
}
"""How refusals call what they refuse, where that is not the option's own name."""


def is_named(option: str, refusal: str) -> bool:
    """Return whether the words of a refusal are about an option, or a way."""
    pattern = _WORDS.get(option, re.escape(option).replace("_", "[_ ]"))
    return bool(re.search(pattern, refusal, re.IGNORECASE))
