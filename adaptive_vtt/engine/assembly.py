"""A fresh belief, put together from what an audit was asked for."""

from typing import Any

from ..certify.plan import Certify
from ..journal.facts import CertificateFacts
from ..space import QuestionSpace
from ..surrogates import REGISTRY, LossSurrogate, Named, named, sample_features
from ..types import CallMode
from .belief import Belief
from .proxies import Proxies

QUESTION_GP = "question-gp"
"""The surrogate of losses, where none is named."""


def fresh_belief(
    certify: Certify,
    space: QuestionSpace,
    answers: CallMode,
    *,
    seed: int | str,
    device: str,
    proxies: Proxies,
    begun: CertificateFacts | None = None,
    **readings: Any,
) -> Belief:
    """The belief of an audit that has asked nothing yet, with certifier and surrogate of losses
    where targets are certified.

    ``seed``: the audit's key; ``begun``: see ``Certify.certifier``.
    ``readings`` are Belief's ``memory``, ``form`` and ``history``.
    """
    certifier = certify.certifier(space, answers, begun)
    if certifier is None:
        return Belief(space, seed=seed, device=device, **readings)
    losses = None
    if certify.surrogate is not False:
        losses = _losses(
            named(QUESTION_GP if certify.surrogate is True else certify.surrogate),
            space,
            shared=answers == "all",
            features=sample_features(space.dataset, seed=seed),
            proxies=proxies if proxies.names else None,
            device=device,
        )
    return Belief(
        space,
        seed=seed,
        device=device,
        losses=losses,
        certifier=certifier,
        **readings,
    )


def surrogate_in_journal(certify: Certify) -> bool | str:
    """What the setting is called: the name of a surrogate, True for the question GP."""
    if isinstance(certify.surrogate, bool):
        return certify.surrogate
    name = certify.surrogate if isinstance(certify.surrogate, str) else certify.surrogate.name
    return name == QUESTION_GP or name


def _losses(chosen: Named, space: QuestionSpace, **given: Any) -> LossSurrogate:
    """The surrogate of losses, made for this space; see ``surrogates.QuestionGP``."""
    relations = list(dict.fromkeys(v.relation.name for v in space.variants))
    arguments = {
        "relation": [relations.index(v.relation.name) for v in space.variants],
        "severity": [v.severity for v in space.variants],
        "concepts": len(space.concepts),
        **given,
    }
    made = REGISTRY.called(chosen.make, chosen.name, arguments)
    found: LossSurrogate = REGISTRY.checked(made, chosen.name)
    return found
