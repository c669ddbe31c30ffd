"""What a journal says of the other models that an audit's predictions go by."""

from .endpoint_facts import Fact


class CohortFacts(Fact):
    """What predictions knew of other models: their names, the ``keys`` of their audits (None where
    there was none), how many losses of each were ``known``, and a digest of those, ``content``.
    ``members``: what each follows the others by (see ``surrogates.cohort``); ``mean`` and
    ``variance``: of the prior of intercept, slope and factor, that was made of them."""

    models: tuple[str, ...]
    keys: tuple[str | None, ...]
    known: tuple[int, ...]
    content: str
    members: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    variance: tuple[float, ...]
