"""A Python callable from texts to texts as a model: what judges are made of."""

from collections.abc import Callable, Sequence

from ...errors import ModelError
from ...types import Answer, CallMode, Prompt, Unanswered
from ..base import ModelDefaults


class TextModel(ModelDefaults):
    """``function``: list of n texts -> list of n texts. ``price``: what each costs."""

    answers: CallMode = "one"
    needs_image = False

    def __init__(
        self,
        function: Callable[[list[str]], Sequence[str]],
        name: str | None = None,
        *,
        price: float = 0.0,
    ) -> None:
        self.function, self.price = function, price
        self.most_cost = price
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        said = self.function(["\n".join(ask.text for ask in prompt.asks) for prompt in prompts])
        texts = [said] if isinstance(said, str) else list(said)
        if len(texts) != len(prompts) or not all(isinstance(text, str) for text in texts):
            raise ModelError(
                f"model {self.name!r}: expected a list of {len(prompts)} texts, got {said!r:.80}"
            )
        return [Answer((text,), self.price) for text in texts]
