"""What the journal says and what follows from it, worked out once and shared by all sections."""

from functools import cached_property

from ..beliefs import Beliefs
from .content import Content
from .failures import Failure, failures
from .replay import Replay, implied_rates, replay
from .target_status import Standing, standings


class Evidence(Content):
    """A journal's content, the answer GPs that it teaches, and where every target stands."""

    @cached_property
    def replay(self) -> Replay:
        """The answer GPs, learnt again from the first answer to the last."""
        return replay(self)

    @cached_property
    def beliefs(self) -> Beliefs:
        """What was believed as the audit went on."""
        rows, about = self.believed
        return Beliefs(self.facts, about, rows, self.draws, self.calls, self.history)

    @cached_property
    def failures(self) -> list[Failure]:
        """Every call with a wrong answer, the surest mistakes first."""
        return failures(self)

    @cached_property
    def standings(self) -> list[Standing]:
        """Where every target stands, in the order of the certificate; [] without one.

        Where classes are compared with each other, beliefs about one of them imply no rate.
        """
        if self.certificate is None:
            return []
        alone = self.facts.space.concepts_are != "classes"
        return standings(self, self.certificate, implied_rates(self, self.replay) if alone else {})
