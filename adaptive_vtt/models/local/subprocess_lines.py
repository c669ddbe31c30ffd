"""Any program as a model: it reads questions and writes answers, one line of JSON each.

A question: {"image": PNG in base64 or null, "concepts": [...], "asks": [{"text", "options"}],
"words": what to say of the image beside the questions, such as where to look, or ""}.
An answer: {"values": [...], "cost": 0.0}, with one value per concept: P(yes), words, null (no
answer), {"mask": PNG in base64} (white inside) or {"unanswered": "why"}; or, of the whole
image, {"unanswered": "why"}. What the program wants to say otherwise goes to standard error.
"""

import base64
import json
import shlex
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np

from ...errors import InputError, ModelError
from ...journal.answer_json import writable
from ...types import Answer, CallMode, Prompt, Unanswered, Value
from ...utils.image_codec import png
from ...utils.image_files import as_mask
from ...utils.options import Option, check_options
from ..base import ModelDefaults
from ..checking import check_answer
from ..network.attempts import MALFORMED
from ..network.http import MAX_REPLY_BYTES


class SubprocessModel(ModelDefaults):
    """The program ``command``, started with the first question in ``directory``.

    One that gives no answer within ``timeout`` seconds is ended, and started again for the
    next question; so is one whose line is no answer, or longer than ``max_reply_bytes``.
    A model that is dropped ends its program. Raises InputError where it cannot be started,
    ModelError where it ends by itself or its first line is no answer.
    """

    def __init__(
        self,
        command: Annotated[str | Sequence[str], Option("the program to start")],
        *,
        name: str | None = None,
        answers: Annotated[
            CallMode, Option("questions that one call answers", name="per_call")
        ] = "all",
        timeout: Annotated[float, Option("seconds that an answer may take", gt=0)] = 60.0,
        directory: Path | None = None,
        max_reply_bytes: Annotated[
            int, Option("a longer line is malformed", ge=1)
        ] = MAX_REPLY_BYTES,
        takes_words: Annotated[
            bool, Option('whether the program goes by "words", where to look')
        ] = False,
    ) -> None:
        given = {"answers": answers, "timeout": timeout, "max_reply_bytes": max_reply_bytes}
        check_options(SubprocessModel, given)
        self._command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self._command:
            raise InputError("model.command: expected a program, got nothing")
        self.name = name or Path(self._command[0]).name
        self.answers: CallMode = answers
        self.takes_words = takes_words
        self._timeout, self._directory, self._longest = timeout, directory, max_reply_bytes
        self._answered = False
        self._program: _Program | None = None

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def close(self) -> None:
        """Ends the program, by the end of its input or, after a second, by force."""
        if self._program is not None:
            self._program.end(patience=1.0)
            self._program = None

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        if self._program is None:
            self._program = _Program(self._command, self._directory)
        try:
            line = self._program.exchange(_question(prompt), self._timeout, self._longest)
        except TimeoutError:
            self._program = None
            return Unanswered("timeout")
        if not line.endswith(b"\n") and len(line) <= self._longest:
            ended = self._program.end(patience=1.0)
            self._program = None
            raise ModelError(f"{self._where(prompt)}: the program {ended}")
        try:
            answer = _read(line, prompt, self._where(prompt))
        except ModelError:
            if not self._answered:
                raise
            self._program.end(patience=0.0)  # whatever else it wrote answers no question
            self._program = None
            return Unanswered(MALFORMED)
        self._answered = True
        return answer

    def _where(self, prompt: Prompt) -> str:
        return f"model {self.name!r} asked about sample {prompt.sample_id!r}"


class _Program:
    """A running program, its two pipes, and a file for what it says besides."""

    def __init__(self, command: list[str], directory: Path | None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the program
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=directory,
            )
        except OSError as error:
            self._errors.close()
            raise InputError(
                f"model.command: cannot start {command[0]!r}: {error.strerror}"
            ) from None
        self._end = weakref.finalize(self, _end, self._process, self._errors, 1.0)

    def exchange(self, line: bytes, timeout: float, longest: int) -> bytes:
        """The line that answers ``line``: without its end, or empty, where the program ended.

        Of one longer than ``longest`` bytes, no more than those and one.

        Raises TimeoutError, the program being ended, where none comes in ``timeout`` seconds.
        """
        with ThreadPoolExecutor(1) as waiting:  # both writing and reading may block
            coming = waiting.submit(self._exchange, line, longest)
            try:
                return coming.result(timeout)
            except TimeoutError:
                self.end(patience=0.0)
                raise
            except OSError:  # nobody reads any more
                return b""

    def _exchange(self, line: bytes, longest: int) -> bytes:
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None  # both are pipes
        assert answered is not None
        asked.write(line)
        asked.flush()
        return answered.readline(longest + 1)

    def end(self, patience: float) -> str:
        """Ends the program, after ``patience`` seconds by force: its code, its last words."""
        self._end.detach()
        return _end(self._process, self._errors, patience)


def _end(process: "subprocess.Popen[bytes]", errors: IO[bytes], patience: float) -> str:
    if patience:
        _hush(process.stdin)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _hush(process.stdin)
    _hush(process.stdout)
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()
    errors.close()
    return f"ended with code {process.returncode}" + (f": {said[-1][:200]}" if said else "")


def _hush(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with suppress(OSError):
            pipe.close()


def _question(prompt: Prompt) -> bytes:
    image = None if prompt.image is None else base64.b64encode(png(prompt.image)).decode()
    asks = [{"text": ask.text, "options": ask.options} for ask in prompt.asks]
    told = {"image": image, "concepts": prompt.concepts, "asks": asks, "words": prompt.words}
    return json.dumps(told).encode() + b"\n"


def _read(line: bytes, prompt: Prompt, where: str) -> Answer | Unanswered:
    """What a line answers; raises ModelError for one that is no answer, in whatever way."""
    try:
        answer = _answer_of(json.loads(line))
    except Exception:  # a line may be wrong in ways nobody thought of
        got = line[:800].decode(errors="replace").strip()[:200]
        raise ModelError(
            f"{where}: expected one line of JSON with 'values' or 'unanswered', got {got!r}"
        ) from None
    check_answer(answer, prompt, where)
    return answer


def _answer_of(said: Any) -> Answer | Unanswered:
    cost = float(said.get("cost", 0.0))
    if "unanswered" in said:
        return Unanswered(writable(str(said["unanswered"])), cost)
    return Answer(tuple(_value(value) for value in said["values"]), cost)


def _value(value: Any) -> Value:
    if value is None:
        return Unanswered("no answer")
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return float(value)
    if "unanswered" in value:
        return Unanswered(writable(str(value["unanswered"])))
    import cv2

    data = np.frombuffer(base64.b64decode(value["mask"], validate=True), np.uint8)
    mask = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if len(data) else None
    if mask is None:
        raise ValueError("no PNG")
    return as_mask(np.asarray(mask, np.uint8), "mask")
