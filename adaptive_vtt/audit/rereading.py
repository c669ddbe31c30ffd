"""Read journaled replies of a chat model again: by present rules, another template, or a function.

The journaled answer stays for a reply that is incomplete or refused, and for other texts in its
place, such as a gateway's page. It also stays for a number from log-probabilities or a stated
probability, unless a function reads the reply.
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
"""Function from a reply and a concept to the answer: True, False, P(yes), a text, or None for no
answer."""


@dataclass(frozen=True)
class Rereading:
    """A way to read replies.

    Attributes:
        template: Template of the prompt, which splits a reply among the questions of a call.
        rule: Function that reads each part; None: the built-in rules.
        numbers: Whether journaled numbers were read from words, so that they are read again.
        name: Name of the rule in the result; None: that of the function.
    """

    template: Template = TEMPLATES["zero-shot"]
    rule: Rule | None = None
    numbers: bool = False
    name: str | None = None

    @property
    def words(self) -> str:
        """A description of this way to read replies."""
        rule = "our own rules"
        if self.rule is not None:
            rule = repr(self.name or getattr(self.rule, "__name__", type(self.rule).__name__))
        return f"by {rule}, split by template {self.template.name!r}"

    def values(self, reply: str, prompt: Prompt, before: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the answers in a reply.

        Args:
            reply: The reply.
            prompt: The prompt.
            before: The journaled answers, one per concept, which stay if nothing is to be read.

        Raises:
            InputError: The rule returns something else than an answer.
        """
        reasons = [value.reason for value in before if isinstance(value, Unanswered)]
        refused = any(r.startswith(REFUSED) or NO_REPLY.fullmatch(r) for r in reasons)
        if not reply.strip() or MORE in reply or refused:
            return before
        if self.rule is None:
            readable = (str, Unanswered, float) if self.numbers else (str, Unanswered)
            pairs = zip(before, words_in(reply, prompt, self.template), strict=True)
            return tuple(new if isinstance(old, readable) else old for old, new in pairs)
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
