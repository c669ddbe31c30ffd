"""No model: whoever has the calls answers them."""

from collections.abc import Sequence

from ...errors import InputError
from ...types import Answer, CallMode, Prompt, Unanswered
from ..base import ModelDefaults


class ByHand(ModelDefaults):
    """Stands where a model would, in an audit that is asked and told by hand."""

    name = "by hand"
    needs_image = False
    takes_words = True

    def __init__(self, answers: CallMode) -> None:
        self.answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise InputError(
            "run: expected an audit with a model to run, got one that is told by hand: ask() for "
            "calls, and tell() what came of each"
        )
