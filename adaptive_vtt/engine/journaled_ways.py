"""How a model came to be asked, kept in the journal: an audit that goes on asks in the same way."""

from collections.abc import Mapping

from ..journal import Journal
from ..journal.endpoint_facts import WayFacts
from ..models.base import ModelDefaults


class JournaledWays:
    """``ModelDefaults.ways`` of ``model``, as the fact "ways"."""

    def __init__(self, journal: Journal, model: ModelDefaults) -> None:
        self._journal, self._model = journal, model
        self._kept: Mapping[str, WayFacts] = {}

    def recall(self, ways: Mapping[str, WayFacts]) -> None:
        """Tells the model what the journal has."""
        self._kept = ways
        self._model.keep_to(ways)

    def keep(self) -> None:
        """Writes what the model found out, where that is new: before what was answered so."""
        ways = self._model.ways()
        if ways != self._kept:
            told = {side: way.model_dump(mode="json") for side, way in ways.items()}
            self._journal.set_facts(ways=told)
            self._kept = ways
