"""Cheaper models, and earlier audits, as hints at what will fail.

A proxy's expected loss on a question becomes a feature of the question GP. It may be as wrong as
it likes: predictions move effort, never what is certified.

Predictions look at thousands of candidate follow-ups per draw and mostly at the same ones again.
Rendering is what costs, so small pictures of them are kept (``Renderings``).
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
from ..models.local.tensors import shrunk, small
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
"""Thumbnails are at most SIDE pixels high and wide; smaller images keep their size."""

LIMIT_BYTES = 256 * 2**20
"""Thumbnails kept, at most: 350,000 in colour, a million in grey, at the full 16 x 16."""

Thumbnails = npt.NDArray[np.uint8]


class Renderings:
    """Thumbnails of a space's follow-ups, as ``space.follow_up(image)`` renders them.

    ``side``: of thumbnails in pixels, at most. ``limit_bytes``: of what is kept; pictures pushed
    out are rendered again when asked about again, and come out the same. All thumbnails have the
    shape that the first source image gives: grey where that is grey.
    """

    def __init__(
        self, space: QuestionSpace, *, side: int = SIDE, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._space, self._side = space, side
        self._limit = limit_bytes
        self._slot: dict[int, int] = {}  # row of each image that is kept
        self._image = np.empty(0, np.int64)  # image of each row
        self._used = np.empty(0, np.int64)  # request that asked for each row last
        self._rows: Thumbnails = np.empty((0, 0), np.uint8)
        self._request = 0
        self._lock = Lock()  # audits of one space share this, in any thread

    @property
    def available(self) -> bool:
        """Whether there are images that are known before any answer; where not, thumbnails
        are (n, 0)."""
        return self._space.dataset.has_images and not self._space.needs_answers

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels (1 or 3) of every thumbnail; zeros without images."""
        if not self.available:
            return 0, 0, 0
        return small(self._space.dataset.sample(0).require_image(), self._side)

    def thumbnails(self, images: Indices) -> Thumbnails:
        """(n, height * width * channels) uint8 of follow-ups by number (n,), repeats allowed."""
        width = int(np.prod(self.shape))
        distinct, back = np.unique(images, return_inverse=True)
        if not width:
            return np.empty((len(back), 0), np.uint8)
        most = max(1, self._limit // width)
        parts = [distinct[i : i + most] for i in range(0, len(distinct), most)]
        with self._lock:
            rows = [self._rows_of(part, most, width) for part in parts]
        return np.concatenate(rows or [np.empty((0, width), np.uint8)])[back]

    def _rows_of(self, images: Indices, most: int, width: int) -> Thumbnails:
        """Thumbnails of at most ``most`` distinct images."""
        self._request += 1
        numbers = images.tolist()
        self._used[[self._slot[n] for n in numbers if n in self._slot]] = self._request
        missing = [n for n in numbers if n not in self._slot]
        rows = dict(zip(missing, self._room(len(missing), most, width), strict=True))
        for sample, follow_ups in groupby(missing, lambda n: n // self._space.numbering.variants):
            source = self._space.dataset.sample(sample)  # read once for all of its follow-ups
            for number in follow_ups:
                made = self._space.made_of(source, number).require_image()
                row = self._slot[number] = rows[number]
                self._rows[row] = shrunk(made, self.shape).ravel()
                self._image[row], self._used[row] = number, self._request
        return self._rows[[self._slot[n] for n in numbers]]

    def _room(self, count: int, most: int, width: int) -> list[int]:
        """``count`` rows to write to: unused ones, then those whose image waited longest."""
        start, size = len(self._slot), len(self._image)
        if start + count > size:
            self._grow(min(most, max(start + count, 2 * size)), width)
        fresh = list(range(start, min(start + count, len(self._image))))
        if len(fresh) == count:
            return fresh
        gone = np.argsort(self._used[:start], kind="stable")[: count - len(fresh)].tolist()
        for row in gone:
            del self._slot[int(self._image[row])]
        return fresh + gone

    def _grow(self, size: int, width: int) -> None:
        more = size - len(self._image)
        self._rows = np.concatenate(
            [self._rows.reshape(-1, width), np.empty((more, width), np.uint8)]
        )
        self._image = np.concatenate([self._image, np.empty(more, np.int64)])
        self._used = np.concatenate([self._used, np.empty(more, np.int64)])


class _Proxy(Protocol):
    def losses(self, question: Indices, truth: Indices) -> Floats:
        """(n,) expected losses in [0, 1]."""

    def content(self) -> str:
        """What the losses follow from, as far as that is known: for the audit's key."""


class Proxies:
    """P proxies as one function: (sample, variant, concept, truth) (n,) each -> n x P.

    A source is an array samples x variants x concepts of P(yes) (of a ``Pool``, n expected losses),
    a table as for
    ``models.Recorded``, a model, or a callable as for ``models.PythonModel`` (asked about
    follow-up images as candidates come up, each image once). ``prior``: what an
    earlier audit of the same space foretells. ``renderings``:
    small follow-ups. ``taught``: nets that learnt from this dataset.
    ``cohort``: what follows from other models, which is no proxy and is kept apart.
    Raises InputError for what is none of these, arrays of another shape, and answers that are
    missing or NaN.
    """

    def __init__(
        self,
        space: QuestionSpace,
        sources: Mapping[str, ProxySource],
        prior: "WarmStart | None" = None,
        taught: "SelfTaught | None" = None,
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
        self.taught, self.renderings = taught, renderings or Renderings(space)
        if taught is not None:
            self._proxies[taught.name] = _Taught(taught, self.renderings, space)
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
        """Name and content of each, for the audit's key."""
        contents = [(name, proxy.content()) for name, proxy in self._proxies.items()]
        return contents + ([] if self.cohort is None else [("cohort", self.cohort.content)])

    @property
    def untold(self) -> bool:
        """Whether nobody can tell what some of them follow from."""
        asked = (p for p in self._proxies.values() if isinstance(p, _Asked))
        return any(proxy.untold for proxy in asked)

    def facts(self) -> JsonObject:
        """For a new journal: what the self-taught proxy is, and the cohort, where they are."""
        facts = {} if self.taught is None else {"self_taught": self.taught.describe()}
        return facts if self.cohort is None else facts | self.cohort.facts()

    def changes(self, facts: Facts) -> JsonObject:
        """For a journal that is gone on with: whether it ever taught other nets there."""
        if self.taught is None:
            return {}
        changed = facts.self_taught != self.taught.describe()
        return {"self_taught_changed": changed or facts.self_taught_changed}

    def __call__(
        self, sample: "Tensor", variant: "Tensor", concept: "Tensor", truth: "Tensor"
    ) -> "Tensor":
        parts = [array(p) for p in (sample, variant, concept)]
        question, side = self._space.number(*parts), array(truth)
        columns = [proxy.losses(question, side)[:, None] for proxy in self._proxies.values()]
        return tensor(np.concatenate(columns, axis=1), like=sample)

    def predicted(self, questions: Indices, truth: Indices) -> Floats | None:
        """Return the mean loss (n,) that the proxies foresee, without asking any model; None where
        none can tell. Who guesses says nothing of how often a model is wrong."""
        telling = [p for p in self._proxies.values() if not isinstance(p, _Asked | _Guessing)]
        if not telling:
            return None
        return np.mean([proxy.losses(questions, truth) for proxy in telling], axis=0)


def _proxy(name: str, source: ProxySource, space: QuestionSpace) -> _Proxy:
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
    """The error of who knows nothing and guesses, where questions have options."""

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
        return f"{name_of(self._model)} {version_of(self._model)}"

    @property
    def untold(self) -> bool:
        return version_of(self._model) is None

    def _ask(self, images: Sequence[int]) -> None:
        answers = checked(self._model, [self._prompt(image) for image in images])
        for image, answer in zip(images, answers, strict=True):
            values = answer.values if isinstance(answer, Answer) else (answer,)
            if not all(isinstance(v, float) for v in values):
                question = self._space.question(image * len(self._space.concepts))
                raise InputError(
                    f"proxy {self._name!r}: expected an answer for every question, got none for "
                    f"sample {question.sample_id!r}, {question.relation} severity "
                    f"{question.severity}"
                )
            self._known[image] = np.array(values, float)

    def _prompt(self, image: int) -> Prompt:
        question = self._space.question(image * len(self._space.concepts))
        made = self._space.follow_up(image) if self._model.needs_image else None
        return Prompt(
            None if made is None else made.image,
            self._space.concepts,
            question.sample_id,
            question.relation,
            question.severity,
            words="" if made is None else made.words,
        )


class _Taught:
    """Nets that learnt from this dataset, asked about thumbnails of all follow-ups at once.

    Its content is what the nets follow from, not their weights: those may differ in the last bit
    on another machine, where the audit should go on with the same key.
    """

    def __init__(self, taught: "SelfTaught", renderings: Renderings, space: QuestionSpace) -> None:
        self._taught, self._renderings, self._space = taught, renderings, space

    def losses(self, question: Indices, truth: Indices) -> Floats:
        images, back = np.unique(self._space.image_of(question), return_inverse=True)
        samples, _ = self._space.numbering.image_parts(images)
        answers = self._taught.predict(self._renderings.thumbnails(images), samples)
        _, _, concept = self._space.parts(question)
        return np.abs(answers[back, concept] - truth)

    def content(self) -> str:
        return f"version {self._taught.version} of {self._space.dataset.fingerprint}"
