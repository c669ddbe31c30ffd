"""Judge models, which read replies about which an oracle's rule is unsure.

EndoBench has been scored in three regimes: by exact match alone; with a judge that matches a reply
to an option (the public code); with a judge that compares it with the truth (the paper). Results of
different regimes are not comparable, so each has a name.

``engine.judge_calls`` asks the judge, journals its questions and replies, and keeps its cost under
the audit's cap.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import ascii_uppercase
from typing import Annotated, Literal

from ..errors import unexpected, unknown
from ..models.base import ModelDefaults, ModelUnderTest, adapted_model
from ..models.checking import name_of
from ..types import Ask, JsonObject, Value
from ..utils.options import Option, check_options

EXACT = "exact"
OPTION_MATCHING = "option-matching judge"
YES_NO = "yes-no judge"
Regime = Literal["option-matching", "yes-no"]
_REGIMES: dict[str, str] = {"option-matching": OPTION_MATCHING, "yes-no": YES_NO}

JUDGED = "judged"
"""Key, in an outcome's details, of a judge's reply and the verdicts of judge and rule."""
MAX_BYTES = 2000
"""Maximum number of bytes (UTF-8) of a reply that is sent to a judge, a quarter of them from its
beginning and the others from its end. It bounds the number of tokens, and so the price."""

_TEXTS = {OPTION_MATCHING: "judge_options.txt", YES_NO: "judge_yes_no.txt"}
"""Default prompts, with {question}, {options} (a line each), {truth}, {reply} and {mark}."""
_NEEDED = {OPTION_MATCHING: ("options", "reply", "mark"), YES_NO: ("truth", "reply", "mark")}
_PLACE = re.compile(r"\{(\w+)\}")
_ALONE = re.compile(r"[\s\"'*.(\[]*([A-Za-z]+)[\s\"'*.)\]]*")


@dataclass(frozen=True)
class Query:
    """A question to a judge about an answer; ``sure``: the rule is sure, so that it decides."""

    text: str
    sure: bool


class JudgeModel:
    """A model that reads the replies about which an oracle's rule is unsure.

    Its reply counts only if it is one letter, Yes or No, apart from punctuation.

    Args:
        model: Any model that an audit may ask, or a function that makes it at the first question.
        regime: "option-matching" or "yes-no".
        prompt: The template of its prompt. Default None: that of its regime.
        check: Share, in [0, 1], of the replies about which the rule is sure that it reads, too.
        name: Name of the model. Default None: the model's, or "judge" for a function.
        code: Whether making it runs the user's code, which a dry run does not.

    Raises:
        InputError: An option is out of range, or the prompt lacks a placeholder.
    """

    def __init__(
        self,
        model: ModelUnderTest | Callable[[], ModelUnderTest],
        *,
        regime: Annotated[
            Regime, Option("whether it names an option, or compares the reply with the truth")
        ] = "option-matching",
        prompt: Annotated[
            str | None,
            Option(
                "what it is sent, with {question}, {options} or {truth}, {reply}, and {mark} on a "
                "line before and after the reply (default: see the how-to)"
            ),
        ] = None,
        check: Annotated[
            float, Option("share of rule-decided replies that it reads, too", ge=0, le=1)
        ] = 0.0,
        name: str | None = None,
        code: bool = False,
    ) -> None:
        check_options(JudgeModel, {"regime": regime, "check": check}, "judge")
        self.regime = _REGIMES[regime]
        text = files(__package__).joinpath("data", _TEXTS[self.regime])
        self.prompt = text.read_text(encoding="utf-8") if prompt is None else prompt
        self.check, self.code = check, code
        self._check_prompt()
        self._source = model
        self.name = name or (name_of(model) if isinstance(model, ModelUnderTest) else "judge")

    @cached_property
    def model(self) -> ModelDefaults:
        """The model, which is made on first access."""
        source = self._source
        return adapted_model(source if isinstance(source, ModelUnderTest) else source())

    def describe(self) -> JsonObject:
        """Return the settings that identify the judge, for the journal."""
        digest = hashlib.blake2b(self.prompt.encode(), digest_size=8).hexdigest()
        return {"name": self.name, "regime": self.regime, "prompt": digest, "check": self.check}

    def text(self, ask: Ask, truth: str, reply: str) -> str:
        """Return the prompt about a reply, whose length is bounded by MAX_BYTES.

        Args:
            ask: The question to the audited model.
            truth: The correct answer.
            reply: The reply.
        """
        whole = reply.encode("utf-8", "replace")
        reply = whole.decode()
        if len(whole) > MAX_BYTES:  # most of the kept part is the end, where conclusions are
            first, last = whole[: MAX_BYTES // 4], whole[-(MAX_BYTES - MAX_BYTES // 4) :]
            reply = f"{first.decode('utf-8', 'ignore')}\n[...]\n{last.decode('utf-8', 'ignore')}"
        digest = hashlib.blake2b(reply.encode("utf-8", "replace"), digest_size=6).hexdigest()
        values = {
            "question": ask.text,
            "options": "\n".join(map("{}. {}".format, ascii_uppercase, ask.options)),
            "truth": truth,
            "reply": reply,
            "mark": f"==={digest}===",  # a hash of the reply, which no reply can contain
        }
        return _PLACE.sub(lambda place: values.get(place[1], place[0]), self.prompt)

    def letter(self, reply: Value, options: tuple[str, ...]) -> str | None:
        """Return the letter that an option-matching judge names; None for another reply."""
        word = _alone(reply)
        known = len(word) == 1 and word.upper() in ascii_uppercase[: len(options)]
        return word.upper() if known else None

    def agrees(self, reply: Value) -> bool | None:
        """Return the verdict of a yes-no judge; None for another reply."""
        return {"yes": True, "no": False}.get(_alone(reply).lower())

    def _check_prompt(self) -> None:
        places = set(_PLACE.findall(self.prompt))
        missing = [name for name in _NEEDED[self.regime] if name not in places]
        if missing or self.prompt.count("{mark}") < 2:
            what = missing[0] if missing else "mark"
            expected = f"{{{what}}} in it{' twice' * (what == 'mark')}, for a {self.regime}"
            raise unexpected("judge.prompt", expected, "none")
        filled = {"question", "options", *_NEEDED[self.regime]}
        if strange := sorted(places - filled):
            raise unknown("place", strange[0], filled, "judge.prompt")


def _alone(reply: Value) -> str:
    """Return the only word of a reply, without punctuation; "" for a longer reply."""
    word = _ALONE.fullmatch(reply) if isinstance(reply, str) and len(reply) < MAX_BYTES else None
    return word[1] if word else ""
