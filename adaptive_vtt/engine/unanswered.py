"""When calls without an answer end an audit, and what may be done about each reason."""

import re

FIRST = 10
"""Calls after which an audit ends where none of them was answered."""
FEWEST = 20
"""Fewest calls of which the unanswered share is judged while more are to come."""
MUTE = 0.5
"""Share of calls, or questions, without an answer above which nothing is certified: every rate
would tell of the silence, and little of what the model sees."""

_REMEDIES = (
    ("no image", "see whether the model takes images, and the server hands them on"),
    ("cut off", "raise max_tokens in [model], or ask for less reasoning in its options"),
    ("content filter", "ask the provider to lift the filter for these images, or ask another"),
    ("refused", "word the question otherwise (template in [model]), or ask another model"),
    ("tool", "turn the server's tools off in [model] options"),
    ("reasoning", "raise max_tokens in [model], or turn reasoning off in its options"),
    (
        "no answer|neither|empty|doubt|both",
        "ask for Yes or No in other words (template in [model]), or set yes_from",
    ),
    ("too long", "raise max_reply_bytes in [model]"),
    ("malformed|truncated", "see whether url in [model] leads to a server of this kind"),
    ("timeout", "raise timeout in [model], or lower in_flight"),
    ("http 429|http 503|http 529", "lower in_flight or calls_per_minute in [model]"),
    ("http 5|connection|error", "wait until the server is well, and look at its log"),
    ("http 4", "change in [model] what the server refuses"),
)
"""By what a reason says, the first that fits."""


def remedy(reason: str) -> str:
    """Return what may be done about questions that went unanswered for this reason."""
    for pattern, what in _REMEDIES:
        if re.search(pattern, reason):
            return what
    return "find out by one call of your own why the model gives no answer"
