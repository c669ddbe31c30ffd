"""Models behind a batch service as OpenAI has it: many calls in one job, answered hours later,
cheaper.

`BatchEndpoint` is the way of a round of calls, `OpenAIBatch` the requests of that service:

1. The record says which calls are to be submitted, under which key, before they are.
2. They are submitted, marked with that key, and the record says what the provider calls them.
3. The batch is looked at, in growing intervals, until it has ended; then its results are read.
4. Calls that failed are submitted again, as a batch of their own, as often as retries allow.

An audit that was interrupted finds its batches in the record, and only waits for them. One with a
key and no id may have arrived or not: the provider's list of batches tells where it is in it. A
batch that is not found, or was given up, counts as billed at its worst price: lists lag, and hide.
What each attempt costs says `paid.py`.
"""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from io import BytesIO
from typing import Annotated, Any, TypeVar

from ...errors import AvttError, InputError, ModelError, one_line
from ...journal.facts import BatchFacts
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.options import Group, Option, check_options
from ...utils.random_streams import generator
from ..base import Record
from ..replies import in_words
from .attempts import MALFORMED, TOO_LONG, Reply, Trouble, reading
from .chat import WORDS, ModelName, parted
from .http import MAX_REPLY_BYTES, MaxReplyBytes, client_options, fields_of, parsed
from .limits import Retries
from .openai import ELICITATIONS, OpenAIProtocol
from .paid import Paid
from .prices import Bill, Prices, whole


def key_of(requests: Mapping[int, Any]) -> str:
    """A hash of what is sent, and a few random digits: no two batches are marked alike."""
    text = json.dumps(list(requests.items())).encode()
    return f"{hashlib.blake2b(text, digest_size=8).hexdigest()}-{secrets.token_hex(4)}"


def name_of(batch: BatchFacts, number: int) -> str:
    """What a request is called: providers take 64 letters, digits, _ and -."""
    return f"{batch.key}_{number}"


class Sent:
    """The batches of a record, which is kept as they are."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._batches = {batch.key: batch for batch in record.read()}

    def about(self, calls: Mapping[int, Any]) -> list[BatchFacts]:
        """Those in which any of the calls was sent, in the order of sending."""
        return [b for b in self._batches.values() if not calls.keys().isdisjoint(b.calls)]

    def put(self, batch: BatchFacts, **changes: Any) -> BatchFacts:
        """The batch, new or changed, once the record has it."""
        batch = batch.model_copy(update=changes)
        self._batches[batch.key] = batch
        self._record.write(list(self._batches.values()))
        return batch

    def drop(self, batch: BatchFacts) -> None:
        """Nothing of this batch was done."""
        del self._batches[batch.key]
        self._record.write(list(self._batches.values()))


class Unkept:
    """A record that goes when the process goes."""

    def __init__(self) -> None:
        self._batches: tuple[BatchFacts, ...] = ()

    def read(self) -> tuple[BatchFacts, ...]:
        return self._batches

    def write(self, batches: Sequence[BatchFacts]) -> None:
        self._batches = tuple(batches)


T = TypeVar("T")
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}", re.ASCII)


def checked_id(found: object) -> str:
    """What a provider calls a batch or file; raises ValueError for what may not stand in a URL."""
    if not (isinstance(found, str) and _ID.fullmatch(found)):
        raise ValueError(f"expected an id, got {str(found)[:60]!r}")
    return found


ROUND = 64
"""Calls per batch. Beliefs are as old as a round is long; docs/benchmarks.md says what it costs."""
DISCOUNT = 0.5
"""What a call costs in a batch, as a share of its price alone, at OpenAI and at Anthropic."""
MAX_FILE_BYTES = 64_000_000
"""The longest file of results that is read."""
MaxFileBytes = Annotated[int, Option("longer results of a batch are not read", ge=1)]
UNLISTED = "no list of batches"
"""The kind of trouble with a provider that does not say which batches it was given."""
GONE = (TOO_LONG, "http 404", "http 410")
"""Results that cannot be had, however often they are asked for."""


RETRIES: dict[str, Any] = {"times": 2, "timeout": 600.0}
"""Of batches, unless others are given."""


@dataclass(frozen=True)
class Polling:
    """How often a batch is looked at, in seconds.

    First after ``first``; each next pause is ``growth`` times as long, up to ``longest`` (24 times
    the first). A batch that has not ended ``patience`` after it was submitted ends the audit, which
    can be resumed; providers end one themselves after 24 hours. Raises InputError for what is no
    time.
    """

    first: Annotated[
        float,
        Option(
            "pause before the first look at a batch; each next is half as long again, up to 24 "
            "times the first",
            name="poll_seconds",
            gt=0,
        ),
    ] = 5.0
    growth: float = 1.5
    longest: float = 0.0  # 24 times the first
    patience: float = 26 * 3600.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", self.longest or 24 * self.first)
        for one in fields(self):
            if not getattr(self, one.name) > 0:
                got = getattr(self, one.name)
                raise InputError(f"polling {one.name}: expected a number above 0, got {got}")


@dataclass(frozen=True)
class Job:
    """A batch as its provider tells of it: whether it has ``ended``, how many of its requests are
    ``done``, the ``files`` of its results, and why it was refused as a whole, so that nothing of it
    was done (``refused``)."""

    ended: bool
    done: int | None = None
    files: tuple[str, ...] = ()
    refused: str | None = None


@dataclass
class _Call:
    """``bill`` of all its attempts, ``failures`` of them, and what was said in the end."""

    prompt: Prompt
    bill: Bill = field(default_factory=Bill)
    failures: int = 0
    said: Answer | Unanswered | None = None

    def final(self, said: Answer | Unanswered) -> Answer | Unanswered:
        return replace(said, cost=self.bill.cost, unconfirmed=self.bill.unconfirmed)


class BatchEndpoint(Paid):
    """A model under test that is asked in batches; ``paid`` are the options of `Paid`.

    ``sleep`` and ``now``, seconds since 1970, are for tests. Errors that end
    the audit (ModelError): a wrong key or unknown model, a request that is refused before any was
    answered, a server that stays away, a batch that does not end. Batches that were submitted stay
    so; anything else leaves a call Unanswered.
    """

    def __init__(
        self,
        *,
        batch_size: Annotated[int, Option("calls drawn and sent together", ge=1)] = ROUND,
        batch_factor: Annotated[
            float, Option("what a call costs in a batch, as a share of the prices", ge=0)
        ] = DISCOUNT,
        polling: Annotated[Polling | None, Group(Polling)] = None,
        retries: Annotated[Retries | None, Group(Retries, RETRIES)] = None,
        max_reply_bytes: MaxReplyBytes = MAX_REPLY_BYTES,
        now: Callable[[], float] = time.time,
        **paid: Any,
    ) -> None:
        check_options(BatchEndpoint, {"batch_size": batch_size, "batch_factor": batch_factor})
        prices = paid.pop("prices", None) or Prices()
        again = retries or Retries(**RETRIES)
        super().__init__(prices=prices.times(batch_factor), retries=again, **paid)
        self.batch, self.polling = batch_size, polling or Polling()
        self._most, self._now = max_reply_bytes, now
        self._reached = False  # until the server replied to anything
        self._in_vain = 0  # batches in a row of which nothing was done
        self._batches = self._foreign = 0
        self._seconds_waiting = 0.0

    # -- what a subclass says --------------------------------------------------------------

    @property
    def form(self) -> str:
        return ""

    def request(self, prompt: Prompt, form: str) -> JsonObject:
        raise TypeError(f"{type(self).__name__} defines no request")

    async def upload(self, requests: Mapping[str, Any]) -> Any:
        """What has to be sent before a batch is made of it; costs nothing. Requests by name."""
        return requests

    async def create(self, key: str, uploaded: Any) -> str:
        """Submits a batch that is marked with ``key``; its id."""
        raise TypeError(f"{type(self).__name__} defines no create")

    async def find(self, key: str, since: int) -> str | None:
        """The id of the batch with that mark, submitted at ``since`` (seconds since 1970) or later;
        None: there is none. Raises Trouble, UNLISTED where the provider cannot tell."""
        raise Trouble(UNLISTED)

    async def look(self, batch: str) -> Job:
        raise TypeError(f"{type(self).__name__} defines no look")

    async def results(self, job: Job) -> list[bytes]:
        """All that came of a batch: lines of JSON, each with the "custom_id" of its request."""
        raise TypeError(f"{type(self).__name__} defines no results")

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        """What one line says; raises Trouble for a request that failed."""
        raise TypeError(f"{type(self).__name__} defines no read")

    def falls_back(self, form: str, trouble: Trouble, prompt: Prompt) -> bool:
        """Whether a request that failed is to be worded in another way."""
        return False

    # -- what the audit uses ---------------------------------------------------------------

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Answers in the order of the prompts, all of one batch, which nothing keeps: an
        interruption loses it."""
        said = self.ask_batch(dict(enumerate(prompts)), Unkept())
        return [said[place] for place in range(len(prompts))]

    def ask_batch(
        self, calls: Mapping[int, Prompt], record: Record
    ) -> dict[int, Answer | Unanswered]:
        asked = {number: _Call(prompt) for number, prompt in calls.items()}
        sent = Sent(record)
        self._counts.calls += len(asked)
        try:
            for batch in sent.about(asked):
                self._settle(batch, asked, sent)
            while waiting := {n: c.prompt for n, c in asked.items() if c.said is None}:
                self._settle(self._submit(waiting, sent), asked, sent)
        except AvttError:
            raise
        except Exception as error:
            raise self._unforeseen(error) from self._cause(error)
        return {n: c.final(c.said) for n, c in asked.items() if c.said is not None}

    def statistics(self) -> JsonObject:
        waited = round(self._seconds_waiting, 1)
        told = {"batches": self._batches, "seconds_waiting_for_batches": waited}
        return {**super().statistics(), **told, "results_of_others": self._foreign}

    # -- exchanges that cost nothing, repeated while they fail ------------------------------

    async def _again(
        self, what: str, doing: Callable[[], Awaitable[T]], final: tuple[str, ...] = ()
    ) -> T:
        """What an exchange gives, repeated while it fails; raises Trouble of a kind that is
        ``final``, and ModelError where it keeps failing."""
        attempt = 0
        while True:
            try:
                with reading():
                    return await self._in_time(doing())
            except Trouble as trouble:
                if trouble.kind in final:
                    raise
                await self._pause(what, trouble, attempt)
                attempt += 1

    async def _pause(self, what: str, trouble: Trouble, attempt: int) -> None:
        """Waits before an exchange is tried again; raises ModelError where that is of no use."""
        asked, retries = trouble.asked or 0.0, self.retries
        away = trouble.kind == "unreachable" and not self._reached
        if (
            trouble.then == "again"
            and not away
            and attempt < retries.give_up_after
            and asked <= retries.patience
        ):
            rng = generator(self._seed, f"backoff/{what}", attempt)
            wait = retries.wait(attempt, trouble.asked, rng)
            self._counts.seconds_backing_off += wait
            await self._sleep(wait)
            return
        trouble.detail = self._shown(trouble.detail)
        raise ModelError(
            f"{self._who}: {what} failed: {one_line(trouble)}; resume once that is mended, what "
            "was submitted is kept"
        ) from None

    def _awaited(self, doing: Awaitable[T]) -> T:
        """The result of what runs on the loop; an interruption here ends it there."""

        async def run() -> T:
            return await doing

        future = self._background.submit(run())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    # -- submitting ------------------------------------------------------------------------

    def _submit(self, prompts: Mapping[int, Prompt], sent: "Sent") -> BatchFacts:
        """A batch of these calls, in the record before it is sent; without an id where nobody
        said whether it arrived."""
        form = self.form
        requests = {number: self.request(prompt, form) for number, prompt in prompts.items()}
        batch = BatchFacts(
            key=key_of(requests), calls=tuple(prompts), form=form, at=int(self._now())
        )
        named = {name_of(batch, number): request for number, request in requests.items()}
        uploaded = self._awaited(self._again("uploading a batch", lambda: self.upload(named)))
        sent.put(batch)
        try:
            found = self._awaited(self._created(batch.key, uploaded))
        except ModelError:  # it was refused
            sent.drop(batch)
            raise
        return batch if found is None else sent.put(batch, id=found)

    async def _created(self, key: str, uploaded: Any) -> str | None:
        """The new batch's id; None where there may be one, and nobody said so."""
        attempt = 0
        while True:
            try:
                with reading():
                    return checked_id(await self._in_time(self.create(key, uploaded)))
            except Trouble as trouble:
                if not _refused(trouble):
                    return None
                await self._pause("submitting a batch", trouble, attempt)
                attempt += 1

    def _arrival(self, batch: BatchFacts) -> str | None:
        """The id of a batch that may have arrived; None: nobody can tell.

        What is not listed yet may be a moment later, so it is looked for twice, and once more
        whenever the audit goes on.
        """

        async def found() -> str | None:
            return await self.find(batch.key, batch.at)

        for look in range(1 if batch.lost else 2):
            if look:
                self._awaited(self._sleep(self.polling.first))
            try:
                one = self._awaited(self._again("looking for a batch", found, (UNLISTED,)))
            except Trouble:
                return None
            if one is not None:
                return checked_id(one)
        return None

    # -- what came of a batch --------------------------------------------------------------

    def _settle(self, batch: BatchFacts, asked: Mapping[int, _Call], sent: "Sent") -> None:
        """Waits for a batch and takes what came of it; or counts it as lost."""
        calls = {number: asked[number] for number in batch.calls if number in asked}
        if batch.id is None:
            found = self._arrival(batch)
            batch = sent.put(batch, id=found, lost=found is None)
        if batch.id is None or batch.lost:
            self._fail(calls, dict.fromkeys(calls, Trouble("batch lost", billed=True)), batch)
            return
        job = self._awaited(self._until_ended(batch, batch.id))
        if job.refused is not None:
            sent.drop(batch)
            self._not_taken(job.refused, again=self._answered or self.trusted)
            return
        self._in_vain, self._batches = 0, self._batches + 1
        self._take(batch, calls, self._found(batch, job))

    async def _until_ended(self, batch: BatchFacts, found: str) -> Job:
        wait = self.polling.first
        while True:
            job = await self._looked_at(found)
            self.doing = "" if job.ended else f"batch: {job.done or 0} of {len(batch.calls)}"
            if job.ended:
                return job
            if self._now() - batch.at > self.polling.patience:
                hours = f"{self.polling.patience / 3600:g} hours"
                raise ModelError(
                    f"{self._who}: expected batch {found!r} to end within {hours}, it has not; "
                    "resume later, or cancel it there first"
                )
            self._seconds_waiting += wait
            await self._sleep(wait)
            wait = min(self.polling.longest, wait * self.polling.growth)

    async def _looked_at(self, found: str) -> Job:
        try:
            return await self._again(f"looking at batch {found}", lambda: self.look(found), GONE)
        except Trouble as trouble:
            said = self._shown(trouble.detail)
            raise ModelError(
                f"{self._who}: batch {found!r} is gone ({trouble.kind}: {said}); avtt resume DIR "
                f"--give-up-batch {found} counts it at its worst price and goes on"
            ) from None

    def _not_taken(self, why: str, *, again: bool) -> None:
        """Nothing of a batch was done: it is submitted anew, or the audit ends."""
        self._in_vain += 1
        if not again or self._in_vain > self.retries.times:
            self._in_vain, said = 0, self._shown(" ".join(why.split()))
            raise ModelError(
                f"{self._who}: a batch was not taken: {said}; nothing of it was billed, and resume "
                "submits it again"
            )
        rng = generator(self._seed, "backoff/batch", self._in_vain)
        self._awaited(self._sleep(self.retries.wait(self._in_vain, None, rng)))

    def _found(self, batch: BatchFacts, job: Job) -> dict[int, bytes | None]:
        """The result of each call, as it came, so that no more than one stands parsed in memory;
        None where there are several."""
        try:
            bodies = self._awaited(
                self._again("reading the results of a batch", lambda: self.results(job), GONE)
            )
        except Trouble as trouble:
            self._note(trouble)
            return {}
        numbers = {name_of(batch, number): number for number in batch.calls}
        found: dict[int, bytes | None] = {}
        for body in bodies:
            for line in filter(bytes.strip, BytesIO(body)):
                number = numbers.get(self._named(line))
                if number is None:
                    self._foreign += 1
                else:
                    found[number] = None if number in found else line
        return found

    def _named(self, line: bytes) -> str:
        """Which request a line of results says that it is about; "" where it says nothing."""
        if len(line) > self._most:
            self._note(Trouble(TOO_LONG, f"over max_reply_bytes, {self._most:,}"))
            return ""
        try:
            said = parsed(line)
        except Trouble as trouble:
            self._note(trouble)
            return ""
        return str(said.get("custom_id")) if isinstance(said, dict) else ""

    def _note(self, trouble: Trouble) -> None:
        if self._counts.first_malformed is None:
            self._counts.first_malformed = self._shown(trouble.detail)

    def _take(
        self,
        batch: BatchFacts,
        calls: Mapping[int, _Call],
        found: Mapping[int, bytes | None],
    ) -> None:
        """Answers first: what was answered tells that requests are right."""
        failed: dict[int, Trouble] = {}
        self._counts.attempts += len(calls)
        for number, call in calls.items():
            try:
                reply = self._reply_to(call.prompt, batch, number, found)
            except Trouble as trouble:
                failed[number] = trouble
            else:
                self._answer(call, reply)
        self._fail(calls, failed, batch)

    def _answer(self, call: _Call, reply: Reply) -> None:
        said = self._priced(reply, call.bill)
        call.bill, call.said = Bill(said.cost, said.unconfirmed), call.said or said

    def _reply_to(
        self,
        prompt: Prompt,
        batch: BatchFacts,
        number: int,
        found: Mapping[int, bytes | None],
    ) -> Reply:
        if number not in found:
            raise Trouble("no result", "the batch ended without one", billed=True)
        line = found[number]
        if line is None:
            raise Trouble(MALFORMED, "expected one result of a request, got two", billed=True)
        with reading():
            reply = self.read(parsed(line), prompt, batch.form)
        with reading(reply.usage):
            self._check(reply, prompt)
        return reply

    def _fail(
        self, calls: Mapping[int, _Call], failed: Mapping[int, Trouble], batch: BatchFacts
    ) -> None:
        """Attempts that failed: each is paid for as it may have been billed, and ends the call
        where no other is left."""
        for number, trouble in failed.items():
            call = calls[number]
            if self.falls_back(batch.form, trouble, call.prompt):
                continue
            last = trouble.then == "leave" or call.failures == self.retries.times
            if last and trouble.reply is not None:
                self._answer(call, trouble.reply)
                continue
            trouble.detail = self._shown(trouble.detail)
            call.bill += self._charge(trouble)
            self._stop_if_hopeless(trouble)
            call.failures += 1
            self._counts.retries += not last
            if last and call.said is None:
                call.said = Unanswered(trouble.kind)


def _refused(trouble: Trouble) -> bool:
    """Whether it is sure that nothing was submitted."""
    said = trouble.kind.startswith("http 4") and trouble.kind != "http 408"
    return said or trouble.kind == "unreachable"


NO_LIST = ("http 404", "http 405", "http 501")
"""Kinds of trouble with a server that lists no batches."""


MARK = "adaptive_vtt"
"""The batch's metadata of this name is our key."""
MAX_BYTES = 200_000_000
"""The longest file of requests that OpenAI takes."""
_CHAT = "/v1/chat/completions"
_PAGE, _PAGES = 100, 50
_DAY = 86_400  # seconds by which two clocks may differ
_ENDED = ("completed", "expired", "cancelled")
_RUNNING = ("validating", "in_progress", "finalizing", "cancelling")


class OpenAIBatch(OpenAIProtocol, BatchEndpoint):
    """A model behind OpenAI's chat completions, in batches, which cost less and take longer.

    The options are those of `OpenAIProtocol` and `BatchEndpoint`. ``max_file_bytes``: a longer file
    of results is not read, and counts as billed.
    """

    def __init__(
        self, model: ModelName, *, max_file_bytes: MaxFileBytes = MAX_FILE_BYTES, **options: Any
    ) -> None:
        super().__init__(model, wire=client_options(max_file_bytes, "max_file_bytes"), **options)
        self._options, self._apart = parted(self._options)  # apart: sent with each exchange

    @property
    def form(self) -> str:
        return self._elicitation.now

    def request(self, prompt: Prompt, form: str) -> JsonObject:
        return self.worded(WORDS if in_words(prompt) else form, self.prepare(prompt), prompt)

    def falls_back(self, form: str, trouble: Trouble, prompt: Prompt) -> bool:
        return self._refuses(WORDS if in_words(prompt) else form, trouble)

    async def upload(self, requests: Mapping[str, Any]) -> str:
        lines = (
            json.dumps({"custom_id": name, "method": "POST", "url": _CHAT, "body": body})
            for name, body in requests.items()
        )
        data = "\n".join(lines).encode()
        if len(data) > MAX_BYTES:
            raise InputError(
                f"model {self.name!r}: expected batches of at most {MAX_BYTES:,} bytes, got "
                f"{len(data):,} for {len(requests)} calls; lower batch_size, or send "
                "image_format = 'jpeg'"
            )
        files = self._client.files.with_raw_response
        file = ("batch.jsonl", data)
        uploaded = await self._said(files.create(file=file, purpose="batch", **self._apart))
        return checked_id(uploaded.get("id"))

    async def create(self, key: str, uploaded: str) -> str:
        created = self._service.create(
            input_file_id=uploaded,
            endpoint=_CHAT,
            completion_window="24h",
            metadata={MARK: key},
            **self._apart,
        )
        return checked_id((await self._said(created)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            try:
                page = await self._said(self._service.list(limit=_PAGE, **after, **self._apart))
            except Trouble as trouble:
                raise Trouble(UNLISTED) if trouble.kind in NO_LIST else trouble from None
            for batch in page["data"]:
                if (batch.get("metadata") or {}).get(MARK) == key:
                    return checked_id(batch["id"])
            if not (page["data"] and page.get("has_more")):
                return None
            if page["data"][-1]["created_at"] < since - _DAY:  # the newest come first
                return None
            after = {"after": checked_id(page["data"][-1]["id"])}
        raise Trouble(UNLISTED)

    async def look(self, batch: str) -> Job:
        reply = await self._said(self._service.retrieve(batch, **self._apart))
        status = reply["status"]
        if reply["id"] != batch or status not in (*_RUNNING, *_ENDED, "failed"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        if status == "failed":
            return Job(True, refused=_why(reply.get("errors")))
        if status not in _ENDED:
            counts = fields_of(reply.get("request_counts"))
            return Job(False, sum(whole(counts.get(n)) or 0 for n in ("completed", "failed")))
        files = [reply.get("output_file_id"), reply.get("error_file_id")]
        return Job(True, files=tuple(checked_id(file) for file in files if file))

    async def results(self, job: Job) -> list[bytes]:
        files = self._client.files.with_raw_response
        return [await self._body(files.content(file, **self._apart)) for file in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        response = result.get("response")
        if not isinstance(response, dict):  # its batch expired or was cancelled, or it failed
            error = fields_of(result.get("error"))
            code, words = str(error.get("code"))[:60], str(error.get("message"))[:200]
            kinds = {"batch_expired": "batch expired", "batch_cancelled": "batch cancelled"}
            raise Trouble(kinds.get(code, "batch error"), f"{code}: {words}", refused=True)
        status, body = response["status_code"], response["body"]
        if status != 200:
            raise self._refusal(status, json.dumps(body).encode(), {})
        if form not in ELICITATIONS:
            raise ValueError(f"expected a way to P(yes), got {form[:40]!r}")
        return self._reply(body, prompt, WORDS if in_words(prompt) else form)

    @property
    def _service(self) -> Any:
        return self._client.batches.with_raw_response

    async def _said(self, exchange: Awaitable[Any]) -> JsonObject:
        reply = parsed(await self._body(exchange))
        if not isinstance(reply, dict):
            raise TypeError(f"expected a JSON object, got {type(reply).__name__}")
        return reply

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        try:
            body = await super()._body(exchange)
        except Trouble as trouble:
            self._reached = self._reached or trouble.kind != "unreachable"
            raise
        self._reached = True
        return body


def _why(errors: Any) -> str:
    """Why a batch was refused as a whole."""
    listed = fields_of(errors).get("data")
    first = listed[0] if isinstance(listed, list) and listed else None
    return str(first.get("message")) if isinstance(first, dict) else "no reason was given"
