"""What was found out about a model and its judge, kept in the journal: an audit that goes on asks
in the same way, and reserves as much money."""

from collections.abc import Mapping

from ..journal import Journal
from ..journal.endpoint_facts import WayFacts
from ..models.base import ModelDefaults

Bounds = Mapping[str, tuple[int, int]]


class JournaledWays:
    """``ModelDefaults.ways`` of ``model``, as the fact "ways"; and the ``bounds`` of tokens that it
    and its ``judge`` turned out to have, as the fact "bounds"."""

    def __init__(
        self, journal: Journal, model: ModelDefaults, judge: ModelDefaults | None = None
    ) -> None:
        self._journal, self._model, self._judge = journal, model, judge
        self._kept: Mapping[str, WayFacts] = {}
        self._bounds: Bounds = {}

    def recall(self, ways: Mapping[str, WayFacts], bounds: Bounds) -> None:
        """Tells the models what the journal has."""
        self._kept, self._bounds = ways, bounds
        self._model.keep_to(ways)
        self._model.keep_bounds(bounds)
        if self._judge is not None and "judge" in bounds:
            self._judge.keep_bounds({"": bounds["judge"]})

    def keep(self) -> None:
        """Writes what was found out, where that is new: before what was answered so."""
        ways, bounds = self._model.elicitation(), dict(self._model.bounds())
        if ways != self._kept:
            told = {side: way.model_dump(mode="json") for side, way in ways.items()}
            self._journal.set_facts(ways=told)
            self._kept = ways
        if self._judge is not None and (found := self._judge.bounds()):
            bounds["judge"] = found[""]
        if bounds != self._bounds:
            self._journal.set_facts(bounds=bounds)
            self._bounds = bounds
