"""Plain objects with only what a protocol demands, completed by the defaults of all the rest."""

from typing import Any


class Completed:
    """Stands before a class of defaults: whatever ``plain`` has goes before those, always as it is
    now, and what is set is set on ``plain``.

    Nothing else asks an object what it has. Special methods such as ``__len__`` are not passed on.
    """

    def __init__(self, plain: Any) -> None:
        object.__setattr__(self, "plain", plain)

    def __getattribute__(self, name: str) -> Any:
        if name == "plain" or name.startswith("__"):
            return object.__getattribute__(self, name)
        try:
            return getattr(self.plain, name)
        except AttributeError:
            return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.plain, name, value)
