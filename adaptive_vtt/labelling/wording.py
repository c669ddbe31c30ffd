"""What an inspector reads of an object, in words."""

from ..captions.rules import ERROR_TYPES, RULES
from .items import NONE, Item


def visibility(item: Item) -> str:
    """How much of the object the follow-up shows, and whether its caption names it."""
    named = "named" if item.said else "not named"
    if item.visible is None:
        return f"not known ({item.status}), {named}"
    return f"{100 * item.visible:.0f} % ({item.status}), {named}"


def verdict(item: Item) -> str:
    """What the audit says of the object; REIC's rules are spelt out."""
    if item.rule is None:
        return "no violation"
    meaning = RULES.get(item.rule, "") if item.relation.startswith("reic/") else ""
    return f"breaks rule {item.rule}" + (f": {meaning}" if meaning else "")


def worded(type: str) -> str:
    """An error type, or NONE, with its meaning."""
    return "no error" if type == NONE else f"{type}  {ERROR_TYPES[type]}"
