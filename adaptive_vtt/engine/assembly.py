"""A fresh belief, put together from what an audit was asked for."""

from collections.abc import Mapping
from typing import Any

from ..certify.plan import Certify
from ..space import QuestionSpace
from ..surrogates import QuestionGP, sample_features
from ..types import CallMode
from .belief import Belief
from .proxies import Proxies


def fresh_belief(
    certify: Certify,
    space: QuestionSpace,
    answers: CallMode,
    *,
    seed: int | str,
    device: str,
    proxies: Proxies,
    begun: Mapping[str, Any] | None = None,
    **readings: Any,
) -> Belief:
    """The belief of an audit that has asked nothing yet, with certifier and question GP where
    targets are certified.

    ``seed``: the audit's key; ``begun``: see ``Certify.certifier``.
    ``readings`` are Belief's ``memory``, ``form`` and ``history``.
    """
    certifier = certify.certifier(space, answers, begun)
    if certifier is None:
        return Belief(space, seed=seed, device=device, **readings)
    relations = list(dict.fromkeys(v.relation.name for v in space.variants))
    losses = QuestionGP(
        [relations.index(v.relation.name) for v in space.variants],
        [v.severity for v in space.variants],
        len(space.concepts),
        shared=answers == "all",
        features=sample_features(space.dataset, seed=seed),
        proxies=proxies if proxies.names else None,
        device=device,
    )
    return Belief(
        space,
        seed=seed,
        device=device,
        losses=losses if certify.surrogate else None,
        certifier=certifier,
        **readings,
    )
