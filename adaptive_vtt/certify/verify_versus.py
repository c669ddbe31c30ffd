"""What ``verify`` checks of a comparison of two models, written apart from what it checks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..journal.facts import VersusFacts

LEAST_AIM, MOST_AIM = 0.0025, 0.1
ROUNDING = 1e-9


def pivot(versus: "VersusFacts", k: int) -> float:
    """The rate at which both models are alike; one for all targets, or one each."""
    return versus.pivot[k] if len(versus.pivot) > 1 else versus.pivot[0]


def decision(versus: "VersusFacts", k: int, lower: float, upper: float) -> str:
    """Which model the interval of target ``k`` shows to be better; "open": it shows nothing."""
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
    away = abs(centre - pivot(versus, k))
    needed = max(away, versus.margin / abs(versus.scale) - away)
    return min(max(needed, LEAST_AIM), MOST_AIM)
