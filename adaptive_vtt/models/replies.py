"""Replies in words: those that refuse, and what those that reason conclude."""

import re

NO_ANSWER = "no answer"
REFUSED = "refused: "
"""Before the words of a refusal."""

_SHOWN = 80
"""Characters of a refusal that are kept."""

PUBLIC_REFUSALS = re.compile(
    r"can(?:no|')t help with images of people|can(?:no|')t process this file"
    r"|sorry, but without the image provided|[Cc]annot determine the answer"
)
"""The four refusals that the public rule knows."""

_REFUSALS = re.compile(
    r"(?:\bI(?:'m| am)?\b[^.!?\n]{0,30})?\b(?:"
    r"(?:can(?:no|')t|cannot|can not|won't|will not|unable to|not able to|not in a position to)"
    r" (?:\w+ )?(?:help|assist|process|provide|analy[sz]e|interpret|diagnose|determine|identify"
    r"|answer|comply|view|see|tell)"
    r"|sorry, but without the image|decline to|as an ai\b"
    r"|(?:consult|ask|see) an? (?:\w+ )?(?:doctor|physician|gastroenterologist|professional)"
    r")[^\n]*",
    re.IGNORECASE,
)


def refused(reply: str) -> str | None:
    """The words with which a reply refuses, shortened; None where it does not."""
    found = PUBLIC_REFUSALS.search(reply) or _REFUSALS.search(reply)
    return " ".join(found.group().split())[:_SHOWN] if found else None


def conclusion(reply: str) -> str:
    """What stands after the last "Final answer:", or the whole reply where there is none.

    For free answers after reasons, which may name the truth and its contrary alike.
    """
    found = re.split(r"(?i)final\s+answer\s*(?:is\b|[:=])\s*", reply)
    return found[-1].strip("* \n") if len(found) > 1 else reply
