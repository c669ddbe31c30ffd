"""What an inspector reads of an object, in words."""

from ..oracles.caption_rules import ERROR_TYPES, rule_of
from .items import NONE, Item


def visibility(item: Item) -> str:
    """How much of the object the follow-up shows, and whether its caption names it."""
    named = "named" if item.said else "not named"
    if item.visible is None:
        return f"not known ({item.status}), {named}"
    return f"{100 * item.visible:.0f} % ({item.status}), {named}"


def verdict(item: Item) -> str:
    """What the audit says of the object; the rule is spelt out."""
    if item.rule is None:
        return "no violation"
    return f"breaks rule {item.rule}: {rule_of(item.relation, item.rule)}"


def worded(type: str) -> str:
    """An error type, or NONE, with its meaning."""
    return "no error" if type == NONE else f"{type}  {ERROR_TYPES[type]}"
