"""The parts that audits are put together from, by what they go by."""


def describe_part(part: object) -> str:
    """What a part goes by, for the journal: its ``describe``, a function's name, or its class."""
    said = getattr(part, "describe", None) or getattr(part, "__name__", type(part).__name__)
    return str(said)
