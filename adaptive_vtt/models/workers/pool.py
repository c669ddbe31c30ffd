"""The calls that wait for a worker, and the threads that see to it that each has one."""

import threading
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ...errors import AvttError, ModelError, OrderError, one_line
from ...types import Answer, Prompt, Unanswered
from ..base import CallLost
from .holding import About
from .places import Died, Place

MAX_DEATHS = 5
"""Workers that may die of one question, which is then unanswered. Few enough that a model which
crashes at some images gets on, and so many that chance does not kill them: where each call has one
in ten, about one question in 100,000."""
MAX_STARTS = 5
"""Times in a row that a worker may die while it makes the model; then it is given up."""
JOINING = 1.0
"""Seconds that ``close`` waits for a thread whose worker is gone."""
Said = Answer | Unanswered


@dataclass
class Task:
    """A prompt that waits for its answer."""

    prompt: Prompt
    future: "Future[Said]" = field(default_factory=Future)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells questions apart."""
        prompt = self.prompt
        return prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts


class WorkerPool:
    """One thread for each of ``places``; ``batch``: the most prompts that a worker takes at a time.

    Every future ends: with an answer; with ModelError, where the model raised; with CallLost,
    where the worker died; and, once ``MAX_DEATHS`` died of a question, with Unanswered. Where so
    many died and none ever answered that ends the pool, as does a model that cannot be made, and a
    last worker that is given up.
    """

    def __init__(self, places: Sequence[Place], batch: int) -> None:
        self.about: About | None = None
        self.trusted = False
        """Whether the model is known to answer: a question that workers die of ends nothing."""
        self.deaths = self.lost = self.given_up = 0
        self._places, self._batch = places, batch
        self._changed = threading.Condition()  # guards all that follows
        self._waiting: deque[Task] = deque()
        self._died_of: Counter[tuple[object, ...]] = Counter()
        self._ready = 0
        self._closed = False
        self._wrong: AvttError | None = None
        self._threads = [
            threading.Thread(target=self._serve, args=(place,), daemon=True) for place in places
        ]
        for thread in self._threads:
            thread.start()

    def begun(self) -> About:
        """What the first worker says of its model. Raises what is wrong with that."""
        with self._changed:
            self._changed.wait_for(lambda: self.about or self._wrong)
            if self.about is None:
                raise self._wrong or OrderError("workers: were closed")
            return self.about

    def submit(self, prompt: Prompt) -> "Future[Said]":
        """The answer, later. Raises OrderError after ``close``."""
        task = Task(prompt)
        with self._changed:
            if self._closed:
                raise OrderError("workers: were closed; they cannot be asked any more")
            if self._wrong is not None:
                _fail([task], self._wrong)
            else:
                self._waiting.append(task)
                self._changed.notify()
        return task.future

    @property
    def starting(self) -> int:
        """How many workers are not ready yet, or not again."""
        return len(self._places) - self._ready - self.given_up

    def close(self) -> None:
        """Ends all workers; what waits is told so. A second call does nothing."""
        self._end(OrderError("workers: were closed; they cannot be asked any more"))
        for place in self._places:
            place.close()
        for thread in self._threads:
            thread.join(JOINING)

    # -- one thread for each worker ------------------------------------------------------------

    def _serve(self, place: Place) -> None:
        try:
            while not self._closed and self._started(place):
                self._answer(place)
        except AvttError as error:
            self._end(error)
        except Exception as error:  # a thread must not leave others waiting
            self._end(_unforeseen(error))
        finally:
            place.close()

    def _started(self, place: Place) -> bool:
        """Whether a worker is ready there. False: it was given up, and there are others."""
        last: Died | None = None
        for _ in range(MAX_STARTS):
            try:
                about = place.start()
            except Died as died:
                last = died
                continue
            with self._changed:
                self.about = self.about or about
                self._ready += 1
                self._changed.notify_all()
            return True
        with self._changed:
            self.given_up += 1
            left = self.given_up < len(self._places)
        if left:
            return False
        raise ModelError(
            f"worker: {MAX_STARTS} in a row died while the model was made, the last {last}; look "
            "whether memory is enough for so many workers"
        )

    def _answer(self, place: Place) -> None:
        """Has tasks answered until the worker dies, or the pool is closed."""
        while self._answers(place):
            pass

    def _answers(self, place: Place) -> bool:
        """Whether the worker answered its next tasks; False: it died, or the pool is closed.

        A call of its own for each: a thread that waits must hold no task, whose future would keep
        alive who asked.
        """
        tasks = self._taken()
        try:
            return self._asked(place, tasks)
        except Exception as error:  # an answer that cannot be read here, say
            _fail(tasks, error if isinstance(error, AvttError) else _unforeseen(error))
            raise

    def _asked(self, place: Place, tasks: Sequence[Task]) -> bool:
        """Whether the worker lives on; what is not foreseen here is for the caller to tell."""
        try:
            said = place.ask([task.prompt for task in tasks]) if tasks else []
            for task, answer in zip(tasks, said, strict=True):
                self.trusted = True
                self._died_of.pop(task.key, None)
                task.future.set_result(answer)
        except Died as died:
            self._lost(tasks, died)
            return False
        except AvttError as error:
            _fail(tasks, error)
        return bool(tasks)

    def _taken(self) -> list[Task]:
        """The next tasks for a worker; [] once the pool is closed.

        One that a worker died of goes alone: then it is known what the next one dies of.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            tasks: list[Task] = []
            while self._waiting and len(tasks) < self._batch and not self._closed:
                alone = self._died_of[self._waiting[0].key] > 0
                if alone and tasks:
                    break
                task = self._waiting.popleft()
                if task.future.set_running_or_notify_cancel():
                    tasks.append(task)
                if alone:
                    break
            return tasks

    def _lost(self, tasks: Sequence[Task], died: Died) -> None:
        with self._changed:
            self._ready -= 1
            self.deaths += 1
            self.lost += len(tasks)
            self._died_of.update(task.key for task in tasks)
        if self.deaths >= MAX_DEATHS and not self.trusted:
            prompt = tasks[0].prompt
            error = ModelError(
                f"worker: {MAX_DEATHS} died before any gave an answer; the last {died} (asked "
                f"about sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity})"
            )
            _fail(tasks, error)
            raise error
        most = self.begun().stated["most_cost"] or 0.0
        for task in tasks:
            if self._died_of[task.key] < MAX_DEATHS:
                task.future.set_exception(CallLost(f"worker: {died}"))
            else:  # what was lost before is counted by who asked
                task.future.set_result(Unanswered(f"{MAX_DEATHS} workers died of it", most))

    def _end(self, error: AvttError) -> None:
        """No more answers will come, and ``error`` says why."""
        with self._changed:
            self._closed = self._closed or isinstance(error, OrderError)
            self._wrong = self._wrong or error
            tasks, self._waiting = list(self._waiting), deque()
            self._changed.notify_all()
        _fail(tasks, self._wrong)


def _unforeseen(error: Exception) -> ModelError:
    return ModelError(f"worker: {type(error).__name__}: {one_line(error)}")


def _fail(tasks: Sequence[Task], error: AvttError) -> None:
    """An error of its own for each: whoever raises one adds where that was."""
    for task in tasks:
        if not task.future.done():
            task.future.set_exception(type(error)(str(error)))
