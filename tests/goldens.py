"""What thirty audits came to, kept in ``goldens/``, so that moving code is seen to change nothing.

``python -m tests.goldens [NAME ...]`` writes them anew, of all audits or those named, and prints
which differ and where. Draws, answers, intervals, the result and what the report's figures and
tables hold are kept, floats to 6 digits; of a long list its first items and a digest of all.
Times, hashes and folders, which differ from run to run, are struck out.
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
from tests.golden_audits import AUDITS, Ended

FOLDER = Path(__file__).with_suffix("")
DIGITS, NOISE = 6, 9  # of a float: significant digits, and the last decimal
MAX, SHOWN, WIDTH = 120, 2, 110  # characters of a whole list, items of a longer one; a line
STRUCK = (
    (r"\b\d+(\.\d)?\s+s\b|\b\d+ min \d\d s\b", "TIME"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"[\w+/=]{100,}", "BYTES"),  # masks, packed by whatever zlib there is
)
BOUNDS = ("estimate", "lower", "upper", "certified")
LEFT_OUT = {"journal_head", "line", "marker", "font", "hovertemplate", "hoverinfo", "customdata"}


def golden(name: str) -> Any:
    """The audit of that name, run now, part by part, as JSON has it."""
    torch.set_num_threads(1)  # sums of several threads come out in any order
    with TemporaryDirectory() as folder:
        ended = AUDITS[name](Path(folder))
        found = json.loads(json.dumps(parts(ended), default=of_json))
        ended.journal.close()
    return shortened(plain(found, folder))


def parts(ended: Ended) -> dict[str, Any]:
    journal, result = ended.journal, ended.result
    told = result.to_dict()
    draws = journal.draws()
    return {
        "draws": [[d.sample, d.question, d.call, d.learned, d.probability] for d in draws],
        "reasons": [d.why for d in draws],
        "moves": [[m.target, m.members, m.active, m.figures] for d in draws for m in d.moves],
        "answers": [[c.call, c.cost, *map(vars, c.answers)] for c in journal.calls()],
        "sources": [[s.source, s.answers, s.cost] for s in journal.sources()],
        "judging": [[j.call, j.question, j.said, j.cost] for j in journal.judging()],
        "intervals": {t["target"]: [t[n] for n in BOUNDS] for t in told["targets"]},
        "verdict": ended.verdict,
        "result": told,
        "failures": result.failures(),
        "beliefs": result.beliefs(),
        "report": report(avtt.report.render(journal, plotly="cdn")),
    }


def report(page: str) -> dict[str, Any]:
    """What a page holds, its wording and looks left out: the verdict, by section the cells of its
    tables and lists, and what its scripts draw figures of, but for pictures."""
    blocks = re.findall(r'<script type="application/json" id="(.*?)">(.*?)</script>', page, re.S)
    figures = {id: json.loads(text) for id, text in blocks if id != "pictures"}
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.S)
    found: dict[str, Any] = {"figures": figures, "verdict": [], "tables": {}}
    for section in re.split(r'(?=<section id=")', body)[1:]:
        id = section.split('"')[1]
        said = re.findall(r'<p class="(?:verdict|status).*?</p>', section, re.S)
        tables = re.findall(r"<table\b.*?</table>|<dl\b.*?</dl>", section, re.S)
        found["verdict"] += map(words, said)
        found["tables"][id] = [[*rows(table)] for table in tables]
    return found


def rows(table: str) -> Iterator[list[str]]:
    for row in re.split(r"<(?=(?:tr|dt)\b)", table)[1:]:
        cells = re.findall(r"((?:th|td|dt|dd)\b[^>]*>.*?)</(?:th|td|dt|dd)>", row, re.S)
        yield [words("<" + cell) for cell in cells]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def of_json(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, pd.DataFrame):
        return value.to_dict("records")
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def plain(value: Any, folder: str) -> Any:
    """With short floats, without what differs from run to run, looks, and what is unknown."""
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
    """With the first items of long lists, and a digest of all."""
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    first = [shortened(each) for each in value]
    if len(json.dumps(value)) <= MAX:
        return first
    digest = hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()
    return [*first[:SHOWN], f"{len(value)} in all, digest {digest}"]


def written(value: Any, indent: str = "") -> str:
    """JSON with keys sorted; what fits on a line stands on one."""
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
    """Every place where two goldens differ, and how."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            yield from differences(before.get(name), now.get(name), f"{place}.{name}".strip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for k, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{place}[{k}]")
    elif before != now:
        said = (json.dumps(each, ensure_ascii=False)[:80] for each in (before, now))
        yield f"{place}: {' -> '.join(said)}"


def told(name: str, found: list[str]) -> str:
    """Which audit differs, in which parts, and the first places of each."""
    by_part: dict[str, list[str]] = {}
    for line in found:
        by_part.setdefault(re.split(r"[.\[:]", line)[0], []).append(line)
    heads = ", ".join(f"{part} ({len(lines)})" for part, lines in by_part.items())
    shown = [f"    {line}" for lines in by_part.values() for line in lines[:SHOWN]]
    return "\n".join([f"{name} differs in {heads}", *shown])


def main(*names: str) -> None:
    """Writes the goldens of the audits named, or all, and says which differ from what was there."""
    for path in FOLDER.glob("*.json"):
        if path.stem not in AUDITS:
            path.unlink()
            print(f"{path.stem} is no audit any more")
    changed = 0
    for name in names or AUDITS:
        now = golden(name)
        if found := [*differences(kept(name), now)]:
            changed += 1
            print(told(name, found))
            (FOLDER / f"{name}.json").write_text(written(now) + "\n", encoding="utf-8")
    print(f"{changed} of {len(names or AUDITS)} differ, and are written anew")


if __name__ == "__main__":
    main(*sys.argv[1:])
