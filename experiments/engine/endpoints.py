"""Measure audits of an endpoint: its utilisation, and the effect of faults and interruptions.

    python -m adaptive_vtt.experiments.engine.endpoints

throughput: the local endpoint runs in its own process and takes one second per answer, with 64
calls in flight. "of the ideal" is the calls answered per second, from the first answer to the last,
over 64. "engine ms" is this process's processor time per call. "whole ms" also includes encoding,
HTTP and making the images.

limit: the local endpoint answers 16 calls at a time after half a second and refuses more (429).
Audits to the same half-width have 16 and 64 calls in flight, or "auto", which does not know the
limit. "in flight" is the mean over draws; "429 per call" counts refusals.

chaos: on an endpoint in memory with a fast clock, a fifth of all attempts fail, by 429, 5xx,
connections cut in the middle of a billed reply, hangs, and refusals. It keeps the bill.

kills: audits over HTTP in forked processes are killed with SIGKILL at random moments with calls in
flight, and resumed until they end. They are compared with an undisturbed one.
"""

import asyncio
import json
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from multiprocessing import get_context
from typing import Any

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit
from adaptive_vtt.audit.everything import means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.demo.answers import Reply as DemoReply
from adaptive_vtt.demo.server import STATISTICS, DemoServer
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.models import Answer, Limits, OpenAIChat, Prices, Prompt, Retries, Usage
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.models.network.attempts import Reply, Trouble
from adaptive_vtt.models.network.endpoint import Endpoint
from adaptive_vtt.models.network.http import Encoding
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import CallMode, Floats, Image, Unanswered
from adaptive_vtt.utils.random_streams import generator

from ..medtest import phantoms
from ..program import Row, Watch, in_processes, options, save_table
from .killed_audits import ended, run_and_end, served

FRAMES, SIDE = 200, 128
FLIGHT = 64
LIMIT = 16
"""Most calls that an endpoint with a limit answers at a time."""
FAULTS = 0.2
PRICES = Prices(input=2.5, output=10.0)
MAX_INPUT, MAX_OUTPUT = 400, 32
"""Most tokens of a request and of a reply."""
BUDGET = 80
"""Calls of an audit that is killed."""
CAPS = (60.0, 200.0)
"""Most cost of audits with even and odd seeds: too little to certify, and enough."""
RELATIONS = ("identity", "brightness_down", "contrast_down")
TARGETS = ("overall", "relations")


# -- throughput -------------------------------------------------------------------------------


def frames() -> Any:
    """Return synthetic frames, all drawn at once, so that drawing them takes no measured time."""
    drawn = phantoms.frames(FRAMES, size=SIDE, seed=0, concepts=["polyp", "instrument", "stool"])
    samples = [drawn.sample(k) for k in range(FRAMES)]
    labels = pd.DataFrame([s.truth for s in samples], index=[s.id for s in samples])
    return from_table([s.image for s in samples], labels, name=drawn.name)


class Knowing:
    """Model that recognises a dataset's images, also at another brightness, and their truths.

    It gives the wrong answer to a share ``error`` of the questions.
    """

    name = "demo-endoscopist"

    def __init__(self, dataset: Dataset, error: float = 0.2) -> None:
        self._samples = [dataset.sample(k) for k in range(len(dataset))]
        self._looks = np.stack([_look(sample.require_image()) for sample in self._samples])
        self._error = error

    def replies(self, image: Image | None, prompt: str) -> list[DemoReply]:
        look = _look(np.zeros((8, 8, 3), np.uint8) if image is None else image)
        sample = self._samples[int((self._looks @ look).argmax())]
        concept = next(concept for concept in sample.truth if concept in prompt)
        wrong, sure = generator(0, f"knowing/{sample.id}/{concept}/{look.sum():.6f}").random(2)
        truth = sample.truth[concept] != (wrong < self._error)
        yes = (1 + sure) / 2 if truth else (1 - sure) / 2
        return [{"Yes": float(yes), "No": float(1 - yes)}]


def _look(image: Image) -> Floats:
    """Return the grey thumbnail of an image as a vector of mean 0 and length 1."""
    small = cv2.resize(image, (16, 16), interpolation=cv2.INTER_AREA).mean(axis=2).ravel()
    small -= small.mean()
    return small / max(float(np.linalg.norm(small)), 1e-6)


def serve(port: Any, behaviour: Mapping[str, Any]) -> None:
    """Send the server's port through the pipe and serve until the process is ended."""
    with DemoServer(Knowing(frames()), **behaviour) as server:
        port.send(server.port)
        signal.pause()


def chat(url: str, **options: Any) -> OpenAIChat:
    return OpenAIChat(
        Knowing.name,
        base_url=f"{url}/v1",
        encoding=Encoding("jpeg"),
        max_tokens=MAX_OUTPUT,
        max_input_tokens=MAX_INPUT,
        prices=PRICES,
        **options,
    )


def throughput(quick: bool) -> list[Row]:
    calls, rows = (128 if quick else 1280), []
    for name, half_width in (("explores", None), ("certifies", 0.01)):
        with served(serve, {"latency": 1.0}) as url:
            model = chat(url, limits=Limits(in_flight=FLIGHT))
            space = QuestionSpace(frames(), RELATIONS)
            audit = Audit(space, model, budget=calls, candidates=1024, half_width=half_width)
            busy = time.process_time()
            audit.run()
            busy = time.process_time() - busy
            came = np.sort([c.elapsed for c in audit.journal.calls()])
            rate = (calls - 1) / (came[-1] - came[0] + 1.0)  # the first came after a second
            rows.append(
                {
                    "audit": name,
                    "calls": calls,
                    "in flight": FLIGHT,
                    "of the ideal": round(rate / FLIGHT, 3),
                    "engine ms": round(_engine_ms(audit), 1),
                    "whole ms": round(1000 * busy / calls, 1),
                }
            )
            model.close()
    return rows


def limit(quick: bool) -> list[Row]:
    half_width, rows = (0.25 if quick else 0.1), []
    for flight in (LIMIT, FLIGHT, "auto"):
        behaviour = {"latency": 0.5, "spread": 0.3, "at_once": LIMIT}
        with served(serve, behaviour) as url:
            model = chat(url, limits=Limits(in_flight=flight), retries=Retries(times=20))
            space = QuestionSpace(frames(), RELATIONS)
            with Audit(space, model, seed=0, half_width=half_width, candidates=1024) as audit:
                result = audit.run()
                verify(audit.journal)
                draws = audit.journal.draws(proposals=False)
            levels = pd.Series([row.why.get("in_flight") for row in draws], dtype=float)
            model.close()
            counted = bill(url)
            rows.append(
                {
                    "in flight, as given": flight,
                    "in flight": round(levels.ffill().fillna(model.in_flight).mean(), 1),
                    "calls": result.calls,
                    "429": counted["limited"],
                    "429 per call": round(counted["limited"] / counted["answered"], 2),
                    "calls per second": round(result.calls / audit.state().elapsed, 1),
                }
            )
    return rows


class Immediate(ModelDefaults):
    """Model that answers at once, with ``in_flight`` calls in flight."""

    answers: CallMode = "one"
    needs_image = False

    def __init__(self, in_flight: int) -> None:
        self.in_flight = in_flight

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Answer((0.9,)) for _ in prompts]

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        done: Future[Answer | Unanswered] = Future()
        done.set_result(Answer((0.9,)))
        return done


def _engine_ms(audit: Audit) -> float:
    """Return processor ms per call of the same audit with a model that answers at once."""
    space = QuestionSpace(TiledDataset(audit.space.dataset.profile[0], FRAMES), RELATIONS)
    calls = 640
    half_width = audit.certify.half_width
    model = Immediate(FLIGHT)
    same = Audit(space, model, budget=calls, candidates=1024, half_width=half_width)
    start = time.process_time()
    same.run()
    return 1000 * (time.process_time() - start) / calls


# -- chaos ------------------------------------------------------------------------------------


class Chaotic(Endpoint):
    """Endpoint that is wrong on a fifth of its questions and fails on a fifth of its attempts.

    Faults and answers follow from the question and the number of the attempt.

    Attributes:
        billed: Sum of what it charged for all attempts.
        replies: Number of replies that arrived, by question.
    """

    needs_image = False

    def __init__(self, seed: int) -> None:
        async def at_once(seconds: float) -> None:
            await asyncio.sleep(0)

        super().__init__(
            name="chaotic",
            host="nowhere",
            answers="one",
            seed=seed,
            sleep=at_once,
            limits=Limits(in_flight=8),
            retries=Retries(times=3, timeout=60.0, give_up_after=50),
            prices=Prices(input=2.0, output=8.0, tokens=1000),
            bound=Usage(300, 20),
        )
        self.seed = seed
        self.billed = 0.0
        self.replies: Counter[tuple[str, str, int, str]] = Counter()
        self._times: Counter[tuple[str, str, int, str]] = Counter()

    def prepare(self, prompt: Prompt) -> tuple[str, str, int, str]:
        return (prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts[0])

    async def send(self, request: tuple[str, str, int, str], prompt: Prompt) -> Reply:
        outcome, tokens = self.outcome(request, self._times[request])
        self._times[request] += 1
        usage = Usage(tokens, 5)
        if outcome == "429":
            raise Trouble("http 429", asked=1.0)
        if outcome == "5xx":
            raise Trouble("http 503")
        if outcome == "hung":  # answered too late: nobody knows whether it was billed
            self.billed += self.prices.cost(usage) if tokens % 2 else 0.0
            raise Trouble("timeout", billed=True)
        self.billed += self.prices.cost(usage)
        if outcome == "cut":
            raise Trouble("truncated", billed=True)
        self.replies[request] += 1
        return Reply((self.p_yes(request),), usage)

    def outcome(self, request: tuple[str, str, int, str], times: int) -> tuple[str, int]:
        """Return the outcome of an attempt, and the tokens of its request."""
        rng = generator(self.seed, "chaos/" + "/".join(map(str, request)), times)
        kind = str(rng.choice(["429", "5xx", "hung", "cut"])) if rng.random() < FAULTS else "fine"
        return kind, int(rng.integers(100, 301))

    def p_yes(self, request: tuple[str, str, int, str]) -> float:
        """Return P(yes); the truth is always yes."""
        return float(generator(self.seed, "said/" + "/".join(map(str, request))).random() >= 0.2)

    def loss(self, request: tuple[str, str, int, str]) -> float:
        """Return the realised loss of a question, which is 1 where every attempt would fail."""
        attempts = range(self.most_attempts)
        answered = any(self.outcome(request, k)[0] == "fine" for k in attempts)
        return 1 - self.p_yes(request) if answered else 1.0


def chaos_space() -> QuestionSpace:
    return QuestionSpace(TiledDataset(np.ones((150, 2), np.int8), 150), ["identity", "rotation"])


def chaotic_audit(seed: int) -> Row:
    """Run one audit with faults. Return its cost by both sides' books, and its coverage."""
    space, model, cap = chaos_space(), Chaotic(seed), CAPS[seed % 2]
    audit = Audit(
        space,
        model,
        seed=seed,
        half_width=0.1,
        targets=TARGETS,
        max_cost=cap,
        candidates=512,
        surrogate=False,
    )
    watch = Watch(chaos_truth(space, model))
    result = audit.run(watch)
    model.close()
    table = result.targets
    return {
        "certified": bool(table["certified"].all()),
        "capped": "was spent" in str(result.reason),
        "held": watch.held,
        "calls": result.calls,
        "cost": result.cost,
        "billed": model.billed,
        "over": max(result.cost, model.billed) > cap + 1e-9,
        "twice": sum(count > 1 for count in model.replies.values()),
    }


def chaos_truth(space: QuestionSpace, model: Chaotic) -> Any:
    questions = space.nth(np.arange(space.size))
    words = [space.question(int(q)) for q in questions]
    losses = [model.loss((w.sample_id, w.relation, w.severity, w.concept)) for w in words]
    return means(space, named_targets(space, TARGETS), questions, np.array(losses))


def chaos(quick: bool) -> list[Row]:
    seeds = 6 if quick else 300
    runs = pd.DataFrame(in_processes(chaotic_audit, range(seeds)))
    return [
        {
            "audits": seeds,
            "ended": len(runs),
            "certified": int(runs["certified"].sum()),
            "stopped by the cap": int(runs["capped"].sum()),
            "covered": int(runs["held"].sum()),
            "over the cap": int(runs["over"].sum()),
            "answers paid twice": int(runs["twice"].sum()),
            "calls": round(float(runs["calls"].mean()), 1),
            "billed of booked": round(float((runs["billed"] / runs["cost"]).mean()), 3),
        }
    ]


# -- kills ------------------------------------------------------------------------------------


def killed_audit(url: str, journal: str) -> None:
    """Run the audit that is killed and resumed, in its own process."""
    retries = Retries(timeout=5.0, first_wait=0.01)
    to_its_end(chat(url, limits=Limits(in_flight=8), retries=retries), journal, half_width=0.05)


def to_its_end(model: ModelDefaults, journal: str, **options: Any) -> None:
    """Run the killed audit of ``model`` to its end; see ``run_and_end``."""
    audit = Audit(
        QuestionSpace(frames(), RELATIONS),
        model,
        seed=0,
        budget=BUDGET,
        targets=TARGETS,
        candidates=256,
        surrogate=False,
        journal=journal,
        **options,
    )
    run_and_end(audit, journal, lambda _: {"intervals": audit.journal.facts()["intervals"]})


def kills(quick: bool) -> list[Row]:
    behaviour = {"latency": 0.05, "spread": 0.5, "fail": 0.06}
    runs = pd.DataFrame(struck(killed_audit, 2 if quick else 100, 0.6, behaviour))
    return [
        {
            "kills": runs["kills"].sum(),
            "audits": len(runs),
            "with the undisturbed certificate": runs["same"].sum(),
            "calls asked again": runs["lost"].sum(),
            "answered twice": (runs["answered"] - BUDGET).sum(),
        }
    ]


def struck(
    audit: Callable[[str, str], None], moments: int, longest: float, behaviour: Mapping[str, Any]
) -> list[Row]:
    """Run audits until ``moments`` of their processes were killed.

    Args:
        audit: Function from the endpoint's address and a journal's path, run in its own process.
        moments: Number of kills.
        longest: Most seconds from an audit's start to its kill.
        behaviour: Arguments of the demo server.

    Returns:
        A row per audit: its outcome, whether its intervals are the ``same`` as those of an
        undisturbed audit, and the endpoint's counts.
    """
    context, rng = get_context("fork"), np.random.default_rng(0)
    runs: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, served(serve, behaviour) as url:
        whole = ended(context, audit, url, f"{folder}/whole.db", [])
        while sum(run["kills"] for run in runs) < moments:
            before = bill(url)
            waits = rng.uniform(0.0, longest, int(rng.integers(1, 4))).tolist()
            outcome = ended(context, audit, url, f"{folder}/{len(runs)}.db", waits)
            counted = {name: count - before[name] for name, count in bill(url).items()}
            same = outcome["intervals"] == whole["intervals"]
            runs.append({**counted, **outcome, "same": same})
    return runs


def bill(url: str) -> dict[str, int]:
    """Return the endpoint's counts by name."""
    with urllib.request.urlopen(url + STATISTICS, timeout=10) as reply:
        counts: dict[str, int] = json.load(reply)
        return counts


SUITES = {"throughput": throughput, "limit": limit, "chaos": chaos, "kills": kills}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={}, only=SUITES)
    for name in chosen.only:
        save_table(SUITES[name](chosen.quick), chosen.out / f"endpoints-{name}.csv")


if __name__ == "__main__":
    main()
