"""OpenAI's batches: many calls in one job, answered hours later, cheaper.

1. The calls of a batch are written to the record, under a new key, before they are submitted.
2. The batch is submitted with that key in its metadata, and its id is written to the record.
3. Its status is polled, in growing intervals, until it has ended. Then its results are read.
4. Calls that failed are submitted again, in a further batch, as often as retries allow.

A resumed audit finds its batches in the record, and only waits for them. A batch with a key but no
id may have arrived or not; the provider's list of batches shows whether it did. As such a list may
be incomplete, a batch that is missing from it, or that the user gave up, counts as billed at its
highest price. `paid.py` says what each attempt costs.
"""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import count
from typing import Annotated, Any, TypeVar

from ...errors import AvttError, InputError, ModelError, one_line
from ...journal.facts import BatchFacts
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.options import Group, Option, check_options
from ...utils.random_streams import generator
from ..base import Record
from .attempts import MALFORMED, TOO_LONG, Reply, Trouble, reading
from .chat import ModelName, parted
from .elicitation import WORDS
from .http import MAX_REPLY_BYTES, MaxReplyBytes, fields_of, parsed
from .limits import Retries
from .openai import OpenAIProtocol
from .prices import Bill, Prices, whole
from .shapes import in_words

T = TypeVar("T")
RETRIES: dict[str, Any] = {"times": 2, "timeout": 600.0}
"""Defaults of `Retries` for batches."""
MAX_BYTES = 200_000_000
"""Maximum length of a file of requests that OpenAI accepts."""
GROWTH, LONGEST = 1.5, 24.0
"""Factor by which each pause between two polls is longer than the last, and the longest pause as a
multiple of the first."""
PATIENCE = 26 * 3600.0
"""Seconds after which a batch that has not ended ends the audit; OpenAI ends one after 24 hours."""
MARK = "adaptive_vtt"
"""Field of a batch's metadata that holds our key."""
UNLISTED = "no list of batches"
"""Kind of trouble with a provider that does not list its batches, or lists too many."""
NO_LIST = ("http 404", "http 405", "http 501")
"""Kinds of trouble with a server that lists no batches."""
GONE = (TOO_LONG, "http 404", "http 410")
"""Kinds of trouble with a batch or its results that a retry cannot mend."""
_CHAT = "/v1/chat/completions"
_PAGES = 50
"""Maximum number of pages of the provider's list of batches that are read."""

_ENDED = ("completed", "expired", "cancelled")
_RUNNING = ("validating", "in_progress", "finalizing", "cancelling")
_KINDS = {"batch_expired": "batch expired", "batch_cancelled": "batch cancelled"}
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}", re.ASCII)


def checked_id(name: object) -> str:
    """Return a provider's id of a batch or file; raise ValueError unless it is safe in a URL."""
    if not (isinstance(name, str) and _ID.fullmatch(name)):
        raise ValueError(f"expected an id, got {str(name)[:60]!r}")
    return name


class Sent:
    """The batches that were sent. Each change is written to the audit's record, if there is one."""

    def __init__(self, record: Record | None) -> None:
        self._record = record
        self.batches = {batch.key: batch for batch in record.read()} if record else {}

    def put(self, batch: BatchFacts, **changes: Any) -> BatchFacts:
        """Add or change a batch, and return it with the changes."""
        batch = self.batches[batch.key] = batch.model_copy(update=changes)
        self._write()
        return batch

    def drop(self, batch: BatchFacts) -> None:
        """Remove a batch that the provider did not take."""
        del self.batches[batch.key]
        self._write()

    def _write(self) -> None:
        if self._record is not None:
            self._record.write([*self.batches.values()])


@dataclass(frozen=True)
class Job:
    """The status of a batch, from its provider.

    Attributes:
        ended: Whether it has ended.
        done: Number of its requests that are done; None: unknown.
        files: Ids of the files with its results.
        refused: The reason why the whole batch was refused; None: it was not.
    """

    ended: bool
    done: int | None = None
    files: tuple[str, ...] = ()
    refused: str | None = None


@dataclass
class _Call:
    """A call, and the state of its attempts.

    Attributes:
        prompt: The prompt.
        bill: The cost of all attempts so far.
        failures: Number of attempts that failed.
        answer: The answer; None: a further attempt is needed.
    """

    prompt: Prompt
    bill: Bill = field(default_factory=Bill)
    failures: int = 0
    answer: Answer | Unanswered | None = None

    def paid(self) -> Answer | Unanswered:
        """Return the answer with the cost of all attempts."""
        assert self.answer is not None
        return replace(self.answer, cost=self.bill.cost, unconfirmed=self.bill.unconfirmed)


class OpenAIBatch(OpenAIProtocol):
    """A model behind OpenAI's chat completions, asked in batches, which cost less and take longer.

    These errors end the audit (ModelError): a wrong key or unknown model, a request that is refused
    before any was answered, a server that is down, a batch that does not end. Batches that were
    submitted stay recorded. Any other failure leaves a call Unanswered.

    Args:
        model: The server's name of the model.
        max_file_bytes: Maximum length of a file of results. A longer one is not read, and counts as
            billed.
        batch_size: Number of calls that are drawn and sent together.
        batch_factor: Price of a call in a batch, as a share of that of a single call.
        poll_seconds: Seconds before the first poll; later pauses grow to 24 times this.
        retries: Further attempts and timeouts. Default None: 2 attempts, 600 s.
        prices: Prices of single calls. Default None: unknown.
        max_reply_bytes: Maximum length of the result of one call; a longer one is a failed attempt.
        now: Function that returns seconds since 1970; for tests.
        **options: Options of `OpenAIProtocol`.
    """

    may_judge = False
    bytes_option = "max_file_bytes"

    def __init__(
        self,
        model: ModelName,
        *,
        max_file_bytes: Annotated[
            int, Option("longer results of a batch are not read", ge=1)
        ] = 64_000_000,
        batch_size: Annotated[int, Option("calls drawn and sent together", ge=1)] = 64,
        batch_factor: Annotated[
            float, Option("share of the prices that a batch costs", ge=0)
        ] = 0.5,
        poll_seconds: Annotated[
            float, Option("pause before the first look; later ones grow to 24 times this", gt=0)
        ] = 5.0,
        retries: Annotated[Retries | None, Group(Retries, RETRIES)] = None,
        prices: Prices | None = None,
        max_reply_bytes: MaxReplyBytes = MAX_REPLY_BYTES,
        now: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        numbers = dict(batch_size=batch_size, batch_factor=batch_factor, poll_seconds=poll_seconds)
        check_options(OpenAIBatch, numbers)
        super().__init__(
            model,
            max_reply_bytes=max_file_bytes,  # a file of results is one reply
            retries=retries or Retries(**RETRIES),
            prices=(prices or Prices()).times(batch_factor),
            **options,
        )
        self._options = parted(self._options)[0]  # headers and query are those of the upload
        self._service: Any = self._client.batches.with_raw_response
        self.batch, self._poll = batch_size, poll_seconds
        self._most, self._now = max_reply_bytes, now
        self._reached = False  # whether the server has replied to any request
        self._refused_in_a_row = 0  # batches
        self._batches = 0
        self._seconds_waiting = 0.0

    # -- what the audit uses ---------------------------------------------------------------

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return answers in the order of the prompts. Nothing is recorded: an interruption loses
        the batch."""
        answers = self.ask_batch(dict(enumerate(prompts)), None)
        return [answers[place] for place in range(len(prompts))]

    def ask_batch(
        self, calls: Mapping[int, Prompt], record: Record | None
    ) -> dict[int, Answer | Unanswered]:
        asked = {number: _Call(prompt) for number, prompt in calls.items()}
        sent = Sent(record)
        self._counts.calls += len(asked)
        try:
            for batch in [*sent.batches.values()]:
                if not asked.keys().isdisjoint(batch.calls):
                    self._settle(batch, asked, sent)
            while waiting := {n: c.prompt for n, c in asked.items() if c.answer is None}:
                self._settle(self._submit(waiting, sent), asked, sent)
        except AvttError:
            raise
        except Exception as error:
            raise self._unforeseen(error) from self._cause(error)
        return {number: call.paid() for number, call in asked.items()}

    def statistics(self) -> JsonObject:
        waited = round(self._seconds_waiting, 1)
        counts = {"batches": self._batches, "seconds_waiting_for_batches": waited}
        return {**super().statistics(), **counts}

    # -- requests that cost nothing, repeated while they fail --------------------------------

    def _again(
        self,
        what: str,
        exchange: Callable[..., Awaitable[T]],
        *arguments: Any,
        final: Callable[[str], bool] = lambda _: False,
    ) -> T:
        """Return the result of a request to the server, which is repeated while it fails.

        Args:
            what: What the request is for, in errors.
            exchange: The method that makes the request.
            *arguments: Its arguments.
            final: Function from a kind of trouble to whether the caller handles it.

        Raises:
            Trouble: The request failed with a ``final`` kind of trouble.
            ModelError: The request keeps failing.
        """

        async def once() -> T:
            with reading():
                return await self._in_time(exchange(*arguments))

        retries = self.retries
        for attempt in count():
            try:
                result = self._awaited(once())
                self._reached = True
                return result
            except Trouble as trouble:
                self._reached = self._reached or trouble.kind != "unreachable"
                if final(trouble.kind):
                    raise
                hopeless = trouble.then != "again" or (trouble.asked or 0.0) > retries.patience
                if not self._reached or hopeless or attempt >= retries.give_up_after:
                    self._scrub(trouble)
                    remedy = "resume once that is mended, submitted batches are kept"
                    failure = f"{what} failed: {one_line(trouble)}; {remedy}"
                    raise ModelError(f"{self._who}: {failure}") from None
                asked = trouble.asked
            self._counts.seconds_backing_off += self._back_off(what, attempt, asked)
        raise AssertionError

    def _back_off(self, what: str, attempt: int, asked: float | None = None) -> float:
        """Wait before a further attempt, and return the seconds."""
        rng = generator(self._seed, f"backoff/{what}", attempt)
        wait = self.retries.wait(attempt, asked, rng)
        self._awaited(self._sleep(wait))
        return wait

    def _awaited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop and return its result; cancel it if interrupted."""
        future = self._background.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    # -- one batch -------------------------------------------------------------------------

    def _submit(self, prompts: Mapping[int, Prompt], sent: Sent) -> BatchFacts:
        """Record and submit a batch of calls, and return it.

        It has no id if the server did not confirm that it arrived.
        """
        # the elicitation mode, and the options that are left out of requests
        form = "|".join([self._elicitation.now, *self._elicitation.without])
        requests = {number: self.request(prompt, form) for number, prompt in prompts.items()}
        text = json.dumps([*requests.items()]).encode()
        # random digits, as two batches of the same requests need different keys
        key = f"{hashlib.blake2b(text, digest_size=8).hexdigest()}-{secrets.token_hex(4)}"
        by_name = {f"{key}_{number}": request for number, request in requests.items()}
        uploaded = self._again("uploading a batch", self.upload, by_name)
        batch = BatchFacts(key=key, calls=tuple(prompts), form=form, at=int(self._now()))
        sent.put(batch)

        def may_have_arrived(kind: str) -> bool:
            refused = kind.startswith("http 4") and kind != "http 408"
            return not refused and kind != "unreachable"

        try:
            what = "submitting a batch"
            batch_id = self._again(what, self.create, key, uploaded, final=may_have_arrived)
        except Trouble:
            return batch
        except ModelError:  # it was refused
            sent.drop(batch)
            raise
        return sent.put(batch, id=batch_id)

    def _listed_id(self, batch: BatchFacts) -> str | None:
        """Return the id of a batch that may have arrived, None if the provider does not list it.

        Lists may lag, so the list is read twice, and once more whenever the audit resumes.
        """
        with suppress(Trouble):
            for look in range(1 if batch.lost else 2):
                if look:
                    self._awaited(self._sleep(self._poll))
                what, final = "looking for a batch", UNLISTED.__eq__
                batch_id = self._again(what, self.find, batch.key, batch.at, final=final)
                if batch_id is not None:
                    return batch_id
        return None

    def _settle(self, batch: BatchFacts, asked: Mapping[int, _Call], sent: Sent) -> None:
        """Wait for a batch and read its results, or count it as lost.

        Args:
            batch: The batch.
            asked: The calls that wait for an answer, by number.
            sent: All batches.
        """
        calls = {number: asked[number] for number in batch.calls if number in asked}
        if batch.id is None:
            batch_id = self._listed_id(batch)
            batch = sent.put(batch, id=batch_id, lost=batch_id is None)
        if batch.id is None or batch.lost:
            for call in calls.values():
                self._fail(call, Trouble("batch lost", billed=True), batch.form)
            return
        job = self._ended(batch, batch.id)
        if job.refused is not None:
            sent.drop(batch)
            self._wait_or_end(job.refused)
            return
        self._refused_in_a_row, self._batches = 0, self._batches + 1
        self._counts.attempts += len(calls)
        lines = self._lines(batch, job)
        failures: list[tuple[_Call, Trouble]] = []
        for number, call in calls.items():
            try:
                self._answer(call, self._reply_to(call.prompt, batch.form, lines, number))
            except Trouble as trouble:
                failures.append((call, trouble))
        # answers first: a refusal ends an audit only if nothing was ever answered
        for call, failure in failures:
            self._fail(call, failure, batch.form)

    def _ended(self, batch: BatchFacts, batch_id: str) -> Job:
        """Poll a batch until it has ended, and return its status."""
        wait = self._poll
        while True:
            try:
                what = f"looking at batch {batch_id}"
                job = self._again(what, self.look, batch_id, final=GONE.__contains__)
            except Trouble as trouble:
                raise ModelError(
                    f"{self._who}: batch {batch_id!r} is gone ({trouble.kind}: "
                    f"{self._shown(trouble.detail)}); avtt resume DIR --give-up-batch {batch_id} "
                    "counts it at its worst price and continues"
                ) from None
            self.doing = "" if job.ended else f"batch: {job.done or 0} of {len(batch.calls)}"
            if job.ended:
                return job
            if self._now() - batch.at > PATIENCE:
                raise ModelError(
                    f"{self._who}: expected batch {batch_id!r} to end within {PATIENCE / 3600:g} "
                    "hours, it has not; resume later, or cancel it there first"
                )
            self._seconds_waiting += wait
            self._awaited(self._sleep(wait))
            wait = min(LONGEST * self._poll, wait * GROWTH)

    def _wait_or_end(self, why: str) -> None:
        """Wait before a batch that was refused is submitted again, or end the audit."""
        self._refused_in_a_row += 1
        if not (self._answered or self.trusted) or self._refused_in_a_row > self.retries.times:
            self._refused_in_a_row = 0
            remedy = "nothing of it was billed, and resume submits it again"
            why = self._shown(" ".join(why.split()))
            raise ModelError(f"{self._who}: a batch was not taken: {why}; {remedy}")
        self._back_off("batch", self._refused_in_a_row)

    def _lines(self, batch: BatchFacts, job: Job) -> dict[int, bytes | None]:
        """Return the line with the result of each call, None for a call with several results.

        Only the id of a line is read here. It is parsed again later, one at a time, to save memory.
        """
        lines: dict[int, bytes | None] = {}
        try:
            what = "reading the results of a batch"
            bodies = self._again(what, self.results, job, final=GONE.__contains__)
        except Trouble as trouble:
            self._note_malformed(trouble)
            return lines
        numbers = {f"{batch.key}_{number}": number for number in batch.calls}
        for line in (line for body in bodies for line in BytesIO(body) if line.strip()):
            try:
                if len(line) > self._most:
                    raise Trouble(TOO_LONG, f"over max_reply_bytes, {self._most:,}")
                number = numbers.get(str(fields_of(parsed(line)).get("custom_id")))
            except Trouble as trouble:
                self._note_malformed(trouble)
                continue
            if number is not None:
                lines[number] = None if number in lines else line
        return lines

    def _note_malformed(self, trouble: Trouble) -> None:
        """Keep the fault of the first malformed reply for the statistics."""
        if self._counts.first_malformed is None:
            self._counts.first_malformed = self._shown(trouble.detail)

    def _reply_to(
        self, prompt: Prompt, form: str, lines: Mapping[int, bytes | None], number: int
    ) -> Reply:
        """Return the checked reply to a call. Raise Trouble unless there is exactly one."""
        if number not in lines:
            raise Trouble("no result", "the batch ended without one", billed=True)
        if (line := lines[number]) is None:
            raise Trouble(MALFORMED, "expected one result of a request, got two", billed=True)
        with reading(raw=line):
            reply = self.read(parsed(line), prompt, form)
            with reading(reply.usage):
                self._check(reply, prompt)
        return reply

    def _answer(self, call: _Call, reply: Reply) -> None:
        """Book an answered attempt; the first answer of a call counts."""
        answer = self._priced(reply, call.bill)
        call.bill = Bill(answer.cost, answer.unconfirmed)
        call.answer = call.answer or answer

    def _fail(self, call: _Call, trouble: Trouble, form: str) -> None:
        """Book a failed attempt. After the last one the call is unanswered."""
        without = form.split("|")[1:]
        if not trouble.billed and self._refuses(_mode(form, call.prompt), without, trouble):
            return  # the next batch asks in another mode, or without refused options
        last = trouble.then == "leave" or call.failures == self.retries.times
        if last and trouble.reply is not None:
            self._answer(call, trouble.reply)
            return
        self._scrub(trouble)
        call.bill += self._charge(trouble)
        self._stop_if_hopeless(trouble)
        call.failures += 1
        self._counts.retries += not last
        if last and call.answer is None:
            call.answer = Unanswered(trouble.kind, reply=trouble.text)

    # -- requests and replies of OpenAI's Batch API ----------------------------------------

    def request(self, prompt: Prompt, form: str) -> JsonObject:
        """Return the request of a call in a batch.

        Args:
            prompt: The prompt.
            form: The elicitation mode and options to leave out, separated by "|".
        """
        return self._request(_mode(form, prompt), self.prepare(prompt), prompt)

    async def upload(self, requests: Mapping[str, Any]) -> Any:
        """Upload a file of requests, by name, for a batch; return its id. This costs nothing."""
        call = {"method": "POST", "url": _CHAT}
        lines = ({**call, "custom_id": name, "body": body} for name, body in requests.items())
        data = "\n".join(map(json.dumps, lines)).encode()
        if len(data) > MAX_BYTES:
            raise InputError(
                f"model {self.name!r}: expected batches of at most {MAX_BYTES:,} bytes, got "
                f"{len(data):,} for {len(requests)} calls; lower batch_size, or send "
                "image_format = 'jpeg'"
            )
        create = self._client.files.with_raw_response.create
        sending = create(file=("batch.jsonl", data), purpose="batch", **self._apart)
        return checked_id((await self._object(sending)).get("id"))

    async def create(self, key: str, uploaded: Any) -> str:
        """Submit a batch with our key in its metadata; return its id.

        Args:
            key: The key.
            uploaded: The id of the file of requests.
        """
        batch = {"input_file_id": uploaded, "endpoint": _CHAT, "completion_window": "24h"}
        created = self._service.create(**batch, metadata={MARK: key}, **self._apart)
        return checked_id((await self._object(created)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        """Return the id of the batch with our key, None if it is not listed.

        Args:
            key: The key.
            since: Seconds since 1970 when the batch was submitted; older batches are not read.

        Raises:
            Trouble: The request failed; its kind is UNLISTED if the provider lists no batches.
        """
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            try:
                page = await self._object(self._service.list(limit=100, **after, **self._apart))
            except Trouble as trouble:
                raise Trouble(UNLISTED) if trouble.kind in NO_LIST else trouble from None
            for batch in page["data"]:
                if (batch.get("metadata") or {}).get(MARK) == key:
                    return checked_id(batch["id"])
            if not (page["data"] and page.get("has_more")):
                return None
            # the newest come first, and clocks may differ by a day
            if page["data"][-1]["created_at"] < since - 86_400:
                return None
            after = {"after": checked_id(page["data"][-1]["id"])}
        raise Trouble(UNLISTED)

    async def look(self, batch: str) -> Job:
        """Return the status of the batch with this id."""
        reply = await self._object(self._service.retrieve(batch, **self._apart))
        status = reply["status"]
        if reply["id"] != batch or status not in (*_RUNNING, *_ENDED, "failed"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        if status == "failed":
            errors = fields_of(reply.get("errors")).get("data")
            first = fields_of(errors[0] if isinstance(errors, list) and errors else None)
            return Job(True, refused=str(first.get("message", "no reason was given")))
        if status not in _ENDED:
            counts = fields_of(reply.get("request_counts"))
            return Job(False, sum(whole(counts.get(n)) or 0 for n in ("completed", "failed")))
        files = [reply.get("output_file_id"), reply.get("error_file_id")]
        return Job(True, files=tuple(checked_id(file) for file in files if file))

    async def results(self, job: Job) -> list[bytes]:
        """Return the files of results: lines of JSON, each with the "custom_id" of its request."""
        files = self._client.files.with_raw_response
        return [await self._body(files.content(file, **self._apart)) for file in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        """Return the reply in one result of a batch; raise Trouble if its request failed."""
        response = result.get("response")
        if not isinstance(response, dict):  # the batch expired or was cancelled, or the call failed
            error = fields_of(result.get("error"))
            code, text = str(error.get("code"))[:60], str(error.get("message"))[:200]
            raise Trouble(_KINDS.get(code, "batch error"), f"{code}: {text}", refused=True)
        status, body = response["status_code"], response["body"]
        if status != 200:
            raise self._failed(status, json.dumps(body).encode(), {})
        if form.partition("|")[0] not in self.modes:
            raise ValueError(f"expected an elicitation mode, got {form[:40]!r}")
        return self._reply(body, prompt, _mode(form, prompt))

    async def _object(self, exchange: Awaitable[Any]) -> JsonObject:
        reply = parsed(await self._body(exchange))
        if not isinstance(reply, dict):
            raise ValueError("expected a JSON object, got something else")
        return reply


def _mode(form: str, prompt: Prompt) -> str:
    """Return the mode in which a prompt is asked in a batch of that form."""
    return WORDS if in_words(prompt) else form.partition("|")[0]
