"""Proxies: cheaper models and earlier audits that predict which questions fail.

A proxy's expected loss on a question is a feature of the question GP. Proxies decide which
questions are asked, never what is certified, so a wrong one costs calls but breaks no guarantee.

Each draw looks at thousands of candidate follow-ups, mostly the same ones as before. Rendering is
slow, so thumbnails are kept (``Renderings``).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import models
from ..errors import InputError
from ..journal.facts import Facts
from ..models.base import ModelUnderTest, ProxySource, adapted_model
from ..models.checking import checked, name_of
from ..models.local.tensors import fitted, small
from ..models.versions import version_of
from ..space import QuestionSpace
from ..types import Answer, Floats, Indices, JsonObject, Prompt
from ..utils.importing import is_table
from .tensors import array, hashed, tensor

if TYPE_CHECKING:
    from ..models.local.self_taught import SelfTaught
    from .priors import CohortLosses, WarmStart
    from .tensors import Tensor


SIDE = 16
"""Most pixels of a thumbnail's height and width; smaller images keep their size."""

LIMIT_BYTES = 256 * 2**20
"""Most bytes of thumbnails that are kept: 350,000 in colour, a million in grey, of 16 x 16."""

Thumbnails = npt.NDArray[np.uint8]


class Renderings:
    """A cache of thumbnails of a space's follow-ups, as ``space.follow_up(image)`` renders them.

    All thumbnails have the shape of the first source image's thumbnail, grey if that is grey.

    Args:
        space: All questions.
        side: Most pixels of a thumbnail's height and width.
        limit_bytes: Most bytes that are kept. A thumbnail that was dropped is rendered again when
            it is needed, and comes out the same.
    """

    def __init__(
        self, space: QuestionSpace, *, side: int = SIDE, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._space, self._side = space, side
        self._limit = limit_bytes
        self._slot: dict[int, int] = {}  # image -> its row, for images that are kept
        self._image = np.empty(0, np.int64)  # (rows,), image in each row
        self._used = np.empty(0, np.int64)  # (rows,), last request that read each row
        self._rows: Thumbnails = np.empty((0, 0), np.uint8)
        self._request = 0
        self._lock = Lock()  # audits of one space share this, in any thread

    @property
    def available(self) -> bool:
        """True if follow-up images exist before any answer; if not, thumbnails are (n, 0)."""
        return self._space.dataset.has_images and not self._space.needs_answers

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels (1 or 3) of every thumbnail; zeros without images."""
        if not self.available:
            return 0, 0, 0
        return small(self._space.dataset.sample(0).require_image(), self._side)

    def thumbnails(self, images: Indices) -> Thumbnails:
        """Return thumbnails of follow-ups by number (n,), which may repeat.

        Returns:
            (n, height * width * channels) uint8.
        """
        width = int(np.prod(self.shape))
        distinct, place = np.unique(images, return_inverse=True)
        if not width:
            return np.empty((len(place), 0), np.uint8)
        most = max(1, self._limit // width)
        parts = [distinct[i : i + most] for i in range(0, len(distinct), most)]
        with self._lock:
            rows = [self._cached(part, most, width) for part in parts]
        return np.concatenate(rows or [np.empty((0, width), np.uint8)])[place]

    def _cached(self, images: Indices, most: int, width: int) -> Thumbnails:
        """Return thumbnails of at most ``most`` distinct images, and keep them."""
        self._request += 1
        numbers = images.tolist()
        self._used[[self._slot[n] for n in numbers if n in self._slot]] = self._request
        missing = [n for n in numbers if n not in self._slot]
        rows = dict(zip(missing, self._room(len(missing), most, width), strict=True))
        for sample, follow_ups in groupby(missing, lambda n: n // self._space.numbering.variants):
            source = self._space.dataset.sample(sample)  # read once for all of its follow-ups
            for number in follow_ups:
                image = self._space.made_of(source, number).require_image()
                row = self._slot[number] = rows[number]
                self._rows[row] = fitted(image, *self.shape).ravel()
                self._image[row], self._used[row] = number, self._request
        return self._rows[[self._slot[n] for n in numbers]]

    def _room(self, count: int, most: int, width: int) -> list[int]:
        """Return ``count`` rows to write to: unused ones, then the least recently read ones."""
        start, size = len(self._slot), len(self._image)
        if start + count > size:
            new = min(most, max(start + count, 2 * size)) - size
            rows = self._rows.reshape(-1, width)
            self._rows = np.concatenate([rows, np.empty((new, width), np.uint8)])
            self._image = np.concatenate([self._image, np.empty(new, np.int64)])
            self._used = np.concatenate([self._used, np.empty(new, np.int64)])
        unused = list(range(start, min(start + count, len(self._image))))
        if len(unused) == count:
            return unused
        oldest = np.argsort(self._used[:start], kind="stable")[: count - len(unused)].tolist()
        for row in oldest:
            del self._slot[int(self._image[row])]
        return unused + oldest


class _Proxy(Protocol):
    def losses(self, question: Indices, truth: Indices) -> Floats:
        """Return expected losses (n,) in [0, 1]."""

    def content(self) -> str:
        """Return what the losses depend on, as far as that is known, for the audit's key."""


class Proxies:
    """P proxies as one function: (sample, variant, concept, truth), (n,) each -> n x P losses.

    Args:
        space: All questions.
        sources: Name -> a proxy: an array of P(yes) (samples x variants x concepts), or n expected
            losses for a ``Pool``; a table as for ``models.Recorded``; a model; or a function as for
            ``models.PythonModel``. Models and functions are asked about each follow-up image once,
            when it is first a candidate.
        prior: Predictions from an earlier audit of the same space.
        self_taught: Nets trained on this dataset.
        renderings: Thumbnails of follow-ups, for the nets.
        cohort: Predictions from other models. They are no proxy, and are only kept here.

    Raises:
        InputError: For another kind of source, an array of another shape, or missing answers.
    """

    def __init__(
        self,
        space: QuestionSpace,
        sources: Mapping[str, ProxySource],
        prior: "WarmStart | None" = None,
        self_taught: "SelfTaught | None" = None,
        renderings: Renderings | None = None,
        cohort: "CohortLosses | None" = None,
    ) -> None:
        self._space = space
        if not isinstance(sources, Mapping):
            raise InputError(
                f"proxies: expected a dict, the name of each proxy -> its answers, got "
                f"{type(sources).__name__}; write proxies={{'name': ...}}"
            )
        self._proxies: dict[str, _Proxy] = {
            name: _proxy(name, source, space) for name, source in sources.items()
        }
        guessing = space.dataset.guessing
        if guessing is not None:
            self._proxies["guessing"] = _Guessing(guessing, space)
        self.self_taught, self.renderings = self_taught, renderings or Renderings(space)
        if self_taught is not None:
            self._proxies[self_taught.name] = _SelfTaught(self_taught, self.renderings, space)
        self.cohort = cohort
        self.prior_keys = [] if cohort is None else cohort.cohort.keys
        if prior is not None:
            self._proxies["prior journal"] = prior
            self.prior_keys = [*self.prior_keys, prior.key]

    @property
    def names(self) -> list[str]:
        return [*self._proxies]

    @property
    def content(self) -> list[tuple[str, str]]:
        """Name and content of each proxy, for the audit's key."""
        contents = [(name, proxy.content()) for name, proxy in self._proxies.items()]
        return contents + ([] if self.cohort is None else [("cohort", self.cohort.content)])

    @property
    def unversioned(self) -> bool:
        """True if a proxy is a model without a version, so that its content is not known."""
        asked = (p for p in self._proxies.values() if isinstance(p, _Asked))
        return any(proxy.version is None for proxy in asked)

    def facts(self) -> JsonObject:
        """Return the facts "self_taught" and "cohort" of a new journal, if there are any."""
        facts = {} if self.self_taught is None else {"self_taught": self.self_taught.describe()}
        return facts if self.cohort is None else facts | self.cohort.facts()

    def changes(self, facts: Facts) -> JsonObject:
        """Return the fact of a resumed journal that says whether it ever trained other nets."""
        if self.self_taught is None:
            return {}
        changed = facts.self_taught != self.self_taught.describe()
        return {"self_taught_changed": changed or facts.self_taught_changed}

    def __call__(
        self, sample: "Tensor", variant: "Tensor", concept: "Tensor", truth: "Tensor"
    ) -> "Tensor":
        parts = [array(p) for p in (sample, variant, concept)]
        question, side = self._space.number(*parts), array(truth)
        columns = [proxy.losses(question, side)[:, None] for proxy in self._proxies.values()]
        return tensor(np.concatenate(columns, axis=1), like=sample)

    def predicted(self, questions: Indices, truth: Indices) -> Floats | None:
        """Return the proxies' mean loss (n,), without asking any model; None if there is none.

        The error of guessing is left out, as it does not depend on the model.
        """
        proxies = [p for p in self._proxies.values() if not isinstance(p, _Asked | _Guessing)]
        if not proxies:
            return None
        return np.mean([proxy.losses(questions, truth) for proxy in proxies], axis=0)


def _proxy(name: str, source: ProxySource, space: QuestionSpace) -> _Proxy:
    """Return the proxy that a source stands for; raise InputError for another kind of source."""
    if isinstance(source, np.ndarray):
        return _Table(name, source, space)
    if is_table(source):
        return _Asked(name, models.Recorded(source, name=name), space)
    if isinstance(source, ModelUnderTest):
        return _Asked(name, source, space)
    if not callable(source):
        raise InputError(
            f"proxy {name!r}: expected an array, a table of answers, a model or a function, got "
            f"{type(source).__name__}; of numbers make an array (numpy.asarray)"
        )
    return _Asked(name, models.PythonModel(source, name=name), space)


class _Table:
    """An array of P(yes), or of expected losses."""

    def __init__(self, name: str, values: npt.NDArray[Any], space: QuestionSpace) -> None:
        expected = (len(space.dataset), len(space.variants), len(space.concepts))
        if expected[1:] == (1, 1) and values.shape == expected[:1]:
            values = values[:, None, None]
        if values.shape != expected:
            raise InputError(
                f"proxy {name!r}: expected an array of shape {expected} (samples x variants x "
                f"concepts), got {values.shape}"
            )
        self._values = np.asarray(values, float).ravel()
        wrong = ~((self._values >= 0) & (self._values <= 1))  # NaN is neither
        if wrong.any():
            place = tuple(map(int, np.argwhere(wrong.reshape(expected))[0]))
            raise InputError(
                f"proxy {name!r}: expected P(yes) between 0 and 1, got {values[place]} at sample "
                f"{space.dataset.sample_id(place[0])!r}, {space.variants[place[1]].name}, "
                f"concept {space.concepts[place[2]]!r}"
            )

    def losses(self, question: Indices, truth: Indices) -> Floats:
        return np.abs(self._values[question] - truth)

    def content(self) -> str:
        return hashed(self._values)


class _Guessing:
    """The error (samples x concepts) of guessing among a question's options."""

    def __init__(self, errors: Floats, space: QuestionSpace) -> None:
        self._errors, self._space = errors, space

    def losses(self, question: Indices, truth: Indices) -> Floats:
        sample, _, concept = self._space.parts(question)
        return self._errors[sample, concept]

    def content(self) -> str:
        return hashed(self._errors)


class _Asked:
    """A model that is asked about each follow-up image once."""

    def __init__(self, name: str, model: ModelUnderTest, space: QuestionSpace) -> None:
        self._name, self._model, self._space = name, adapted_model(model), space
        if space.needs_answers and self._model.needs_image:
            raise InputError(
                f"proxy {name!r}: expected a table of answers, got a model, which cannot be shown "
                "follow-ups that the audited model's own captions choose (captions = 'own')"
            )
        self._known: dict[int, Floats] = {}

    def losses(self, question: Indices, truth: Indices) -> Floats:
        images = self._space.image_of(question)
        new = [image for image in dict.fromkeys(images.tolist()) if image not in self._known]
        if new:
            self._ask(new)
        concept = question % len(self._space.concepts)
        pairs = zip(images.tolist(), concept.tolist(), strict=True)
        return np.abs(np.array([self._known[i][c] for i, c in pairs]) - truth)

    def content(self) -> str:
        return f"{name_of(self._model)} {self.version}"

    @property
    def version(self) -> str | None:
        return version_of(self._model)

    def _ask(self, images: Sequence[int]) -> None:
        concepts, prompts = self._space.concepts, []
        for image in images:
            first = self._space.question(image * len(concepts))
            place = first.sample_id, first.relation, first.severity
            if self._model.needs_image:
                follow_up = self._space.follow_up(image)
                prompts.append(Prompt(follow_up.image, concepts, *place, words=follow_up.words))
            else:
                prompts.append(Prompt(None, concepts, *place))
        answers = checked(self._model, prompts)
        for image, prompt, answer in zip(images, prompts, answers, strict=True):
            values = answer.values if isinstance(answer, Answer) else (answer,)
            if not all(isinstance(v, float) for v in values):
                raise InputError(
                    f"proxy {self._name!r}: expected an answer for every question, got none for "
                    f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity}"
                )
            self._known[image] = np.array(values, float)


class _SelfTaught:
    """Nets trained on this dataset, which see thumbnails of the follow-ups.

    The content names the dataset, not the nets' weights: these may differ in the last bit on
    another machine, where a resumed audit must have the same key.
    """

    def __init__(self, nets: "SelfTaught", renderings: Renderings, space: QuestionSpace) -> None:
        self._nets, self._renderings, self._space = nets, renderings, space

    def losses(self, question: Indices, truth: Indices) -> Floats:
        images, place = np.unique(self._space.image_of(question), return_inverse=True)
        samples, _ = self._space.numbering.image_parts(images)
        answers = self._nets.predict(self._renderings.thumbnails(images), samples)
        _, _, concept = self._space.parts(question)
        return np.abs(answers[place, concept] - truth)

    def content(self) -> str:
        return f"version {self._nets.version} of {self._space.dataset.fingerprint}"
