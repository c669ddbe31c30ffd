"""Results of small audits, kept in ``goldens/``: a test shows whether moved code changes any.

``python -m tests.goldens [NAME ...]`` writes them again, of all audits or those named, and prints
which differ and where. Draws, answers, intervals, the result and what the report's figures and
tables hold are kept, floats to 6 digits. Of a long list its first items are kept, a digest of all
that is no float, and two sums of all floats. Floats are compared with a tolerance, as processors
differ in the last bits. Times, hashes and folders, which differ from run to run, are struck out.
"""

import hashlib
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

import adaptive_vtt as avtt
from tests.golden_audits import AUDITS, PAGES, Ended

FOLDER = Path(__file__).with_suffix("")
DIGITS, NOISE = 6, 9  # of a float: significant digits, and the last decimal
CLOSE, NEAR_ZERO = 1e-4, 1e-6  # relative and absolute tolerance of floats
MAX, SHOWN, WIDTH = 120, 2, 110  # characters of a whole list, items of a longer one; a line
STRUCK = (
    (r"\b\d+(\.\d)?\s+s\b|\b\d+ min \d\d s\b", "TIME"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"[\w+/=]{100,}", "BYTES"),  # masks, packed by whatever zlib there is
)
BOUNDS = ("estimate", "lower", "upper", "certified")
LEFT_OUT = {"journal_head", "line", "marker", "font", "hovertemplate", "hoverinfo", "customdata"}


def golden(name: str) -> Any:
    """Run the audit of that name and return its parts as JSON has them."""
    torch.set_num_threads(1)  # sums of several threads come out in any order
    with TemporaryDirectory() as folder:
        ended = AUDITS[name](Path(folder))
        value = json.loads(json.dumps(parts(ended, page=name in PAGES), default=of_json))
        ended.journal.close()
    return shortened(plain(value, folder))


def parts(ended: Ended, *, page: bool) -> dict[str, Any]:
    journal, result = ended.journal, ended.result
    fields, draws = result.to_dict(), journal.draws()
    return {
        "draws": [[d.sample, d.question, d.call, d.learned, d.probability] for d in draws],
        "reasons": [d.why for d in draws],
        "moves": [[m.target, m.members, m.active, m.figures] for d in draws for m in d.moves],
        "answers": [[c.call, c.cost, *map(vars, c.answers)] for c in journal.calls()],
        "sources": [[s.source, s.answers, s.cost] for s in journal.sources()],
        "judging": [[j.call, j.question, j.answers, j.cost] for j in journal.judging()],
        "intervals": {t["target"]: [t[n] for n in BOUNDS] for t in fields["targets"]},
        "verdict": ended.verdict,
        "result": fields,
        "failures": result.failures(),
        "beliefs": result.beliefs(),
        "report": report(avtt.report.render(journal, plotly="cdn")) if page else None,
    }


def report(page: str) -> dict[str, Any]:
    """Return the data of a page without wording and looks: the verdict, the cells of tables and
    lists by section, and what scripts draw figures of, but for pictures."""
    blocks = re.findall(r'<script type="application/json" id="(.*?)">(.*?)</script>', page, re.S)
    figures = {id: json.loads(text) for id, text in blocks if id != "pictures"}
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.S)
    data: dict[str, Any] = {"figures": figures, "verdict": [], "tables": {}}
    for section in re.split(r'(?=<section id=")', body)[1:]:
        id = section.split('"')[1]
        verdict = re.findall(r'<p class="(?:verdict|status).*?</p>', section, re.S)
        tables = re.findall(r"<table\b.*?</table>|<dl\b.*?</dl>", section, re.S)
        data["verdict"] += map(words, verdict)
        data["tables"][id] = [[*rows(table)] for table in tables]
    return data


def rows(table: str) -> Iterator[list[str]]:
    for row in re.split(r"<(?=(?:tr|dt)\b)", table)[1:]:
        cells = re.findall(r"((?:th|td|dt|dd)\b[^>]*>.*?)</(?:th|td|dt|dd)>", row, re.S)
        yield [words("<" + cell) for cell in cells]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def of_json(value: Any) -> Any:
    """Return what JSON can hold in place of a value."""
    if isinstance(value, pd.DataFrame):
        return value.to_dict("records")
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def plain(value: Any, folder: str) -> Any:
    """Return the value with short floats, without looks and what differs from run to run."""
    if isinstance(value, dict):
        named = {n: plain(each, folder) for n, each in value.items() if n not in LEFT_OUT}
        return {name: each for name, each in named.items() if each not in (None, [], {})}
    if isinstance(value, list):
        return [plain(each, folder) for each in value]
    if isinstance(value, float):
        return float(f"{round(value, NOISE):.{DIGITS}g}") + 0.0 if math.isfinite(value) else None
    if isinstance(value, str):
        for pattern, name in ((re.escape(folder), "FOLDER"), *STRUCK):
            value = re.sub(pattern, name, value)
    return value


def shortened(value: Any) -> Any:
    """Return the value with the first items of long lists, a digest and sums of all."""
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    first = [shortened(each) for each in value]
    if len(json.dumps(value)) <= MAX:
        return first
    floats: list[float] = []
    exact = json.dumps(apart(value, floats), sort_keys=True).encode()
    digest = hashlib.blake2b(exact, digest_size=6).hexdigest()
    # the second sum notices floats that change places
    sums = sum(floats), sum(f * math.cos(k) for k, f in enumerate(floats))
    rest = [float(f"{each:.{DIGITS}g}") for each in sums] if floats else []
    return [*first[:SHOWN], f"{len(value)} in all, digest {digest}", *rest]


def apart(value: Any, floats: list[float]) -> Any:
    """Return the value with each float replaced by None, and append the floats in order."""
    if isinstance(value, dict):
        return {name: apart(value[name], floats) for name in sorted(value)}
    if isinstance(value, list):
        return [apart(each, floats) for each in value]
    if isinstance(value, float):
        floats.append(value)
        return None
    return value


def written(value: Any, indent: str = "") -> str:
    """Return JSON with keys sorted; what fits on a line stands on one."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    between = f",\n{indent} "
    if isinstance(value, list):
        items = [written(each, indent + " ") for each in value]
        return f"[{between[1:]}{between.join(items)}\n{indent}]"
    items = [f'"{name}": {written(value[name], indent + " ")}' for name in sorted(value)]
    return f"{{{between[1:]}{between.join(items)}\n{indent}}}"


def kept(name: str) -> Any:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yield every place where two goldens differ, and how."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            yield from differences(before.get(name), now.get(name), f"{place}.{name}".strip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for k, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{place}[{k}]")
    elif before != now and not close(before, now):
        values = (json.dumps(each, ensure_ascii=False)[:80] for each in (before, now))
        yield f"{place}: {' -> '.join(values)}"


def close(before: object, now: object) -> bool:
    numbers = isinstance(before, float) and isinstance(now, float)
    return numbers and math.isclose(before, now, rel_tol=CLOSE, abs_tol=NEAR_ZERO)


def summary(name: str, lines: list[str]) -> str:
    """Return which audit differs, in which parts, and the first places of each."""
    by_part: dict[str, list[str]] = {}
    for line in lines:
        by_part.setdefault(re.split(r"[.\[:]", line)[0], []).append(line)
    heads = ", ".join(f"{part} ({len(rest)})" for part, rest in by_part.items())
    shown = [f"    {line}" for rest in by_part.values() for line in rest[:SHOWN]]
    return "\n".join([f"{name} differs in {heads}", *shown])


def main(*names: str) -> None:
    """Write the goldens of the audits named, or all, and print which differ from those kept."""
    for path in FOLDER.glob("*.json"):
        if path.stem not in AUDITS:
            path.unlink()
            print(f"{path.stem} is no audit any more")
    changed = 0
    for name in names or AUDITS:
        now = golden(name)
        if lines := [*differences(kept(name), now)]:
            changed += 1
            print(summary(name, lines))
            (FOLDER / f"{name}.json").write_text(written(now) + "\n", encoding="utf-8")
    print(f"{changed} of {len(names or AUDITS)} differ, and were written again")


if __name__ == "__main__":
    main(*sys.argv[1:])
