"""Models that say what a reply meant where reading it by rule finds no option.

EndoBench has been scored in three regimes: by exact match alone, with a judge that matches a
reply to an option (the public code), and with a judge that says whether a reply agrees with
the truth (the paper). Results of different regimes cannot be compared, so each has a name.

An audit asks the judge for its oracle: ``engine.judging`` journals what it is asked and says, and
its money stands under the audit's cap.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import ascii_uppercase
from typing import Annotated, Literal

from ..errors import InputError, unknown
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
"""In an outcome's details: what a judge said, and what rule and judge make of the answer."""
MAX_BYTES = 2000
"""Of a reply longer than this, in UTF-8, a judge is shown the first quarter and the end, where
conclusions stand: no more tokens than bytes, so that the bound on a judge's price holds."""

_TEXTS = {OPTION_MATCHING: "judge_options.txt", YES_NO: "judge_yes_no.txt"}
"""What judges are asked, where nothing else is given; {question}, {options} (a line each, with
its letter), {truth}, {reply} and {mark}, around the reply, are filled in."""
_NEEDED = {OPTION_MATCHING: ("options", "reply", "mark"), YES_NO: ("truth", "reply", "mark")}
_PLACE = re.compile(r"\{(\w+)\}")
_ALONE = re.compile(r"[\s\"'*.(\[]*([A-Za-z]+)[\s\"'*.)\]]*")


@dataclass(frozen=True)
class Query:
    """What a judge may be asked about an answer; ``sure``: the rule is, and keeps the last word."""

    text: str
    sure: bool


class JudgeModel:
    """A model of words that says what replies mean of which an oracle's rule is not sure.

    ``model``: whatever an audit may ask, or a function that makes it, called when it is first
    asked (then ``name`` says what it is). ``prompt``: by default that of its regime. ``code``:
    whether making it runs code of the user's, which a dry run leaves alone.

    Replies of a judge count in one form alone: a letter (Yes or No), and nothing else but quotes
    and stops. Raises InputError for options that are none.
    """

    def __init__(
        self,
        model: ModelUnderTest | Callable[[], ModelUnderTest],
        *,
        regime: Annotated[
            Regime,
            Option(
                "it names the option that a reply chooses (default of multiple-choice), or says "
                "whether the reply agrees with the truth (default of contains-truth)"
            ),
        ] = "option-matching",
        prompt: Annotated[
            str | None,
            Option(
                "what it is sent, with {question}, {options} or {truth}, {reply}, and {mark} on a "
                "line before and after the reply (default: see the how-to)"
            ),
        ] = None,
        check: Annotated[
            float,
            Option(
                "share of the replies of which the rule is sure that it is asked about, too, to "
                "report how often they agree; the rule decides those",
                ge=0,
                le=1,
            ),
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
        self._given = model
        self.name = name or (name_of(model) if isinstance(model, ModelUnderTest) else "judge")

    @cached_property
    def model(self) -> ModelDefaults:
        given = self._given
        return adapted_model(given if isinstance(given, ModelUnderTest) else given())

    def describe(self) -> JsonObject:
        """For the journal: another judge makes another audit."""
        digest = hashlib.blake2b(self.prompt.encode(), digest_size=8).hexdigest()
        return {"name": self.name, "regime": self.regime, "prompt": digest, "check": self.check}

    def text(self, ask: Ask, truth: str, reply: str) -> str:
        """Return what is sent about a reply: never longer than the prompt, the question and
        MAX_BYTES."""
        reply = _cut(reply)
        digest = hashlib.blake2b(reply.encode("utf-8", "replace"), digest_size=6).hexdigest()
        values = {
            "question": ask.text,
            "options": "\n".join(map("{}. {}".format, ascii_uppercase, ask.options)),
            "truth": truth,
            "reply": reply,
            "mark": f"==={digest}===",  # follows from the reply, so that none can hold its own
        }
        return _PLACE.sub(lambda place: values.get(place[1], place[0]), self.prompt)

    def letter(self, reply: Value, options: tuple[str, ...]) -> str | None:
        """Return the option that an option-matching judge names; None for anything else."""
        word = _alone(reply)
        known = len(word) == 1 and word.upper() in ascii_uppercase[: len(options)]
        return word.upper() if known else None

    def agrees(self, reply: Value) -> bool | None:
        """Return what a yes-no judge says; None for anything else."""
        return {"yes": True, "no": False}.get(_alone(reply).lower())

    def _check_prompt(self) -> None:
        places = set(_PLACE.findall(self.prompt))
        missing = [name for name in _NEEDED[self.regime] if name not in places]
        if missing or self.prompt.count("{mark}") < 2:
            what = missing[0] if missing else "mark"
            raise InputError(
                f"judge.prompt: expected {{{what}}} in it{' twice' * (what == 'mark')}, which a "
                f"{self.regime} is sent, got none"
            )
        filled = {"question", "options", *_NEEDED[self.regime]}
        if strange := sorted(places - filled):
            raise unknown("place", strange[0], filled, "judge.prompt")


def _alone(reply: Value) -> str:
    """Return the only word of a reply; "" where it says anything else."""
    word = _ALONE.fullmatch(reply) if isinstance(reply, str) and len(reply) < MAX_BYTES else None
    return word[1] if word else ""


def _cut(reply: str) -> str:
    whole = reply.encode("utf-8", "replace")
    if len(whole) <= MAX_BYTES:
        return whole.decode()
    first, last = whole[: MAX_BYTES // 4], whole[-(MAX_BYTES - MAX_BYTES // 4) :]
    return f"{first.decode('utf-8', 'ignore')}\n[...]\n{last.decode('utf-8', 'ignore')}"
