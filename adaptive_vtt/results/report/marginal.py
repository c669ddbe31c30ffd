"""The paper's answer GP as the marginal of the performance GPs.

The paper's performance model is a GP per concept over one coordinate, the answer (``answer_gp``).
Performance GPs extend it to questions: over image, relation and severity, of the margin by which
an answer is right (``question_gp``). Here the way back is gone: every answer is predicted from
those about other images, and what is predicted is summed up over all questions, so that the
coordinate alone is left. Observation from the journal, in which images are numbers: what pixels and
proxies add to these GPs while an audit runs is not in it.
"""

import numpy as np

from ...oracles.margin import margin
from ...types import Floats
from .content import Content

MAX_CALLS = 300
"""Calls that are learnt from, evenly spread over the audit."""
UNFITTED = MAX_CALLS * 1000
"""More answers than there are: the kernel keeps its usual weights, as fitting takes seconds."""


def marginal(content: Content, bins: int) -> Floats | None:
    """C x bins: answers that performance GPs expect in each bin of the coordinate, in all.

    None where answers have no margins: fewer than two, words, or nothing but 0 and 1.
    """
    chosen, share = _chosen(content)
    if len(chosen) < 2 or not content.sided:
        return None
    found = _margins(content, chosen)
    if found is None:
        return None
    mean, deviation, concept, truth = found
    inside = _shares(mean, deviation, truth, bins)
    total = np.zeros((len(content.concepts), bins))
    np.add.at(total, concept.astype(np.int64), inside)
    return total / share


def _chosen(content: Content) -> tuple[list[tuple[int, int, float, float]], float]:
    """Question, truth, loss and margin of the answers of some calls; and what share they are."""
    calls = content.calls
    places = np.unique(np.linspace(0, len(calls) - 1, min(len(calls), MAX_CALLS)).astype(int))
    rows = [
        (a.question, a.truth, a.loss, m)
        for k in places.tolist()
        for a in calls[k].answers
        if a.loss is not None
        and a.truth is not None
        and (m := margin(a.truth, a.coordinate, a.details)) is not None
    ]
    return rows, len(places) / max(len(calls), 1)


def _margins(
    content: Content, rows: list[tuple[int, int, float, float]]
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Mean and standard deviation of each margin, as predicted from others; concept and truth."""
    import torch

    from ...surrogates import QuestionGP
    from ...surrogates.loss_mean import Losses

    question, truth, loss, value = (np.array(column) for column in zip(*rows, strict=True))
    sample, variant, concept = content.facts.space.numbering.parts(question)
    relations, variants = content.relations, content.variants
    gp = QuestionGP(
        [relations.index(relation) for relation, _ in variants],
        [severity for _, severity in variants],
        len(content.concepts),
        shared=content.settings.answers == "all",
        first_fit=UNFITTED,
    )
    asked = (sample, variant, concept, truth.astype(np.int64))
    at, which, about, side, lost, margins = map(torch.from_numpy, (*asked, loss, value))
    gp.observe(Losses(at, which, about, side, lost, margins))
    found = gp.margins()
    if found is None:
        return None
    return found.mean.numpy(), found.variance.sqrt().numpy(), concept.astype(float), truth


def _shares(mean: Floats, deviation: Floats, truth: Floats, bins: int) -> Floats:
    """n x bins: the probability that each answer falls into each bin of the coordinate.

    With P the probability given to the truth, a = P / 2 + 1/2 where the concept is present, and
    1/2 - P / 2 where it is absent; the margin is the logit of P.
    """
    edges = (np.arange(1, bins) - 0.5) / (bins - 1)
    right = np.where(truth[:, None] == 1, 2 * edges - 1, 1 - 2 * edges)
    with np.errstate(divide="ignore"):
        clipped = np.clip(right, 0, 1)
        logit = np.log(clipped) - np.log1p(-clipped)
    below = _normal((logit - mean[:, None]) / deviation[:, None])
    below = np.where(truth[:, None] == 1, below, 1 - below)
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _normal(z: Floats) -> Floats:
    """The standard normal distribution function."""
    import torch

    return torch.special.ndtr(torch.from_numpy(z)).numpy()
