"""Kept replies of a chat model, read again: by today's rules, another template, or a function.

An incomplete reply, one that a server refused, and other texts in its place, such as a gateway's
page, are not read again: the journaled answer stays. So does a number that came from
log-probabilities or from a stated probability, unless a function reads the reply.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import unexpected
from ..models.network.attempts import NO_REPLY
from ..models.network.prompt_templates import TEMPLATES, Template
from ..models.network.shapes import words_in
from ..models.reply_frames import MORE, NO_ANSWER, REFUSED
from ..types import Prompt, Unanswered, Value

Rule = Callable[[str, str], object]
"""Function of a reply and a concept that returns the answer: True or False, P(yes), words; None:
no answer."""


@dataclass(frozen=True)
class Rereading:
    """How replies are read.

    Attributes:
        template: Template of the prompt, which splits a reply among the questions of a call.
        rule: Function that reads each part; None: our own rules.
        numbers: Whether numbers were read in words, so that they are read again.
        name: Name of the rule in the result.
    """

    template: Template = TEMPLATES["zero-shot"]
    rule: Rule | None = None
    numbers: bool = False
    name: str | None = None

    @property
    def words(self) -> str:
        """How replies are read, in words."""
        rule = "our own rules"
        if self.rule is not None:
            rule = repr(self.name or getattr(self.rule, "__name__", type(self.rule).__name__))
        return f"by {rule}, split by template {self.template.name!r}"

    def values(self, reply: str, prompt: Prompt, before: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the answers in a reply, or for each concept the one read ``before``. Raise
        InputError if the rule returns something else."""
        reasons = [value.reason for value in before if isinstance(value, Unanswered)]
        refused = any(r.startswith(REFUSED) or NO_REPLY.fullmatch(r) for r in reasons)
        if not reply.strip() or MORE in reply or refused:
            return before
        if self.rule is None:
            read = (str, Unanswered, float) if self.numbers else (str, Unanswered)
            now = words_in(reply, prompt, self.template)
            return tuple(n if isinstance(b, read) else b for b, n in zip(before, now, strict=True))
        parts, values = self.template.split(reply, len(prompt.concepts)), list[Value]()
        for part, concept in zip(parts, prompt.concepts, strict=True):
            answer = part if isinstance(part, Unanswered) else self.rule(part, concept)
            if answer is None:
                answer = Unanswered(NO_ANSWER)
            elif isinstance(answer, bool | int | float) and 0 <= answer <= 1:
                answer = float(answer)
            elif not isinstance(answer, str | Unanswered):
                raise unexpected(
                    "reading",
                    "True, False, a number from 0 to 1, words or None of the function that reads "
                    "replies",
                    f"{answer!r} for {str(part)[:80]!r}",
                )
            values.append(answer)
        return tuple(values)
