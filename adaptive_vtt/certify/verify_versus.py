"""What ``verify`` checks of a comparison of two models, written apart from what it checks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..journal.facts import VersusFacts

MIN_AIM, MAX_AIM = 0.0025, 0.1
ROUNDING = 1e-9


def pivot(versus: "VersusFacts", k: int) -> float:
    """The rate at which both models are alike; one for all targets, or one each."""
    return versus.pivot[k] if len(versus.pivot) > 1 else versus.pivot[0]


def limit(versus: "VersusFacts | None", k: int) -> float | None:
    """The rate at which target ``k`` just misses the claim; None: nothing is claimed."""
    if versus is None or versus.at_least is None:
        return None
    return pivot(versus, k) + (versus.at_least - ROUNDING) / versus.scale


def decision(versus: "VersusFacts", k: int, lower: float, upper: float, side: str | None) -> str:
    """Which model the interval of target ``k`` shows to be better; "open": it shows nothing. Of a
    claim whether it holds, by the ``side`` of the limit that its rate was decided to lie on."""
    if versus.at_least is not None:
        told = ("holds", "fails") if versus.scale > 0 else ("fails", "holds")
        return {"above": told[0], "below": told[1]}.get(side or "", "open")
    low, high = (versus.scale * (end - pivot(versus, k)) for end in (lower, upper))
    if versus.scale < 0:
        low, high = high, low
    if low > ROUNDING:
        return "better"
    if high < -ROUNDING:
        return "worse"
    return "within" if max(-low, high) <= versus.margin + ROUNDING else "open"


def aim(versus: "VersusFacts", k: int, centre: float) -> float:
    """The half-width that target ``k`` of this expected rate needs to be decided."""
    claim = limit(versus, k)
    away = abs(centre - (pivot(versus, k) if claim is None else claim))
    needed = max(away, versus.margin / abs(versus.scale) - away)
    return min(max(needed, MIN_AIM), MAX_AIM)
