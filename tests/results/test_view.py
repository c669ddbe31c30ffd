"""Runs in the browser: followed while they go on, compared rightly, closed to everybody else."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.certify.status import TargetStatus
from adaptive_vtt.errors import AvttError
from adaptive_vtt.families import OfRelation
from adaptive_vtt.results.runs import Rates, read_run
from adaptive_vtt.results.view import View
from adaptive_vtt.results.view.pages import PATIENCE, Site, compare, known, together
from adaptive_vtt.results.view.watching import SAFE, Latest, Report, Watch, Worker
from adaptive_vtt.utils.figures import COLOURS
from tests.helpers.audits import finished
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.command_line import refused
from tests.helpers.report_pages import block
from tests.helpers.watched import LIMITS, small_space, until, watched


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    body: str


def get(view: View, path: str, host: str = "127.0.0.1", method: str = "GET") -> Got:
    """What a path gets as it stands: no client tidies it."""
    connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Got(answer.status, headers, answer.read().decode())
    finally:
        connection.close()


def state(view: View, name: str) -> dict[str, Any]:
    return dict(json.loads(get(view, f"/run/{name}/state").body))


def audited(folder: Path, **options: Any) -> None:
    given: dict[str, Any] = {**LIMITS, "budget": 12, "seed": 1, "surrogate": False, **options}
    finished(small_space(), journal=folder / "journal.db", **given).close()


pytestmark = pytest.mark.shares  # the process that builds pages is begun by whoever asks first


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs that ended, one of them called as no address may be, and a broken one."""
    root = tmp_path_factory.mktemp("view")
    (root / "secret.txt").write_text("a secret")
    (root / "secret").mkdir()
    audited(root / "secret", budget=4)
    for number, name in enumerate(("first", "second", "a<b>&c? d"), 1):
        audited(root / "runs" / name, seed=number)
    (root / "runs" / "broken").mkdir()
    (root / "runs" / "broken" / "journal.db").write_text("nothing")
    (root / "runs" / "out").symlink_to(root / "secret")
    return root / "runs"


@pytest.fixture(scope="module")
def view(runs: Path) -> Iterator[View]:
    with View(runs) as server:
        yield server


@pytest.mark.parametrize("line", ["http://[bad/", "/?" + "&".join(["by=x"] * 200)])
def test_an_address_that_cannot_be_read_is_the_readers_mistake(view: View, line: str) -> None:
    with socket.create_connection(("127.0.0.1", view.port), timeout=10) as connection:
        connection.sendall(f"GET {line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


# -- a run while it goes on ----------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_is_followed_to_its_end(tmp_path: Path) -> None:
    """Its calls are counted as they come, reports follow them, and the last is of the end."""
    with watched(tmp_path / "runs" / "one") as audit, View(audit.folder) as server:
        assert get(server, "/").headers["location"] == "/run/one/"
        assert state(server, "one")["state"] == "running"
        until(lambda: state(server, "one")["report"])
        early = state(server, "one")
        assert "calls, last entry" in early["words"]
        page = get(server, f"/run/one/{early['report']}")
        assert "Still running" in page.body
        assert page.headers["content-security-policy"] == "frame-ancestors 'self'"
        until(lambda: state(server, "one")["report"] != early["report"])
        audit.hurry()
        assert audit.end == 0  # whoever watched did not hinder it
        until(lambda: state(server, "one")["state"] == "ended")
        until(lambda: "certified" in state(server, "one")["figures"])
        until(lambda: not state(server, "one")["note"])
        time.sleep(0.1)
        last = state(server, "one")
        assert "targets certified" in last["figures"]
        assert last["words"].startswith("ended: ")
        assert "Still running" not in get(server, f"/run/one/{last['report']}").body
        assert get(server, f"/run/one/{early['report']}").status == 404  # not kept for ever


@pytest.mark.slow
@needs_chromium
def test_a_reader_keeps_his_place_while_reports_change(tmp_path: Path) -> None:
    frame = "document.querySelector('iframe:not(.behind)')"
    inside = f"{frame}.contentDocument"
    with (
        watched(tmp_path / "runs" / "one") as audit,
        View(tmp_path / "runs") as server,
        Browser(tmp_path / "profile", 1280, 800) as browser,
    ):
        browser.open(server.url)
        browser.until("document.querySelectorAll('tbody tr').length == 1")
        browser.open(f"{server.url}run/one/")
        browser.until(f"!!{frame} && {inside}.querySelectorAll('main section').length > 3")
        browser.until(f"{inside}.querySelectorAll('.main-svg, main svg').length > 0")
        before = browser.value(f"{frame}.src")
        browser.value(f"{inside}.querySelector('details').open = true")
        section = f"[...{inside}.querySelectorAll('main section[id]')].slice(-1)[0]"
        browser.value(f"{section}.scrollIntoView({{behavior: 'instant'}})")
        there = browser.value(f"Math.round({section}.getBoundingClientRect().top)")
        browser.until(f"!!{frame} && {frame}.src != '{before}'")
        assert browser.value(f"{inside}.querySelector('details').open")
        browser.until(f"Math.abs({section}.getBoundingClientRect().top - {there}) < 3", 5)
        browser.value("document.getElementById('hold').click()")
        held = browser.value(f"{frame}.src")
        audit.hurry()
        browser.until("document.getElementById('words').textContent.startsWith('ended')")
        time.sleep(2.5)
        assert browser.value(f"{frame}.src") == held
        browser.value("document.getElementById('hold').click()")
        browser.until(f"{frame}.src != '{held}'")
        assert browser.complaints == []


# -- only for who sits at this machine, and only what is in the folder ------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_host_that_is_not_this_machine_is_refused(view: View, host: str) -> None:
    """A page on the web that reaches this server by a name of its own (DNS rebinding)."""
    for path in ("/", "/run/first/", "/run/first/state"):
        reply = get(view, path, host)
        assert reply.status == 421
        assert "demo" not in reply.body
        assert "scripted" not in reply.body


def test_no_other_site_may_read_or_frame_a_page(view: View) -> None:
    for path in ("/", "/run/first/", "/run/first/state", "/compare?run=first&run=second"):
        reply = get(view, path, f"localhost:{view.port}")
        assert reply.status == 200
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert get(view, "/", method="POST").status == 501


@pytest.mark.parametrize(
    "path",
    [
        "/run/../secret.txt",
        "/run/..%2fsecret/",
        "/run/out/",
        "/run/first/report/../../../secret.txt",
        "/run/first/report/x/..%2f..%2fsecret.txt",
        "/run/first/journal.db",
        "/files/%2e%2e%2fserver.py",
        "/%00",
        "//etc/passwd",
    ],
)
def test_nothing_is_served_but_what_is_listed(view: View, path: str) -> None:
    reply = get(view, path)
    assert reply.status == 404
    assert "a secret" not in reply.body
    assert "class View" not in reply.body


def test_names_of_runs_are_escaped_and_still_lead_to_them(view: View) -> None:
    page, name = get(view, "/").body, "a%3Cb%3E%26c%3F%20d"
    assert "a<b>" not in page
    assert f'href="/run/{name}/"' in page
    assert get(view, f"/run/{name}/").status == 200
    moved = get(view, f"/run/{name}")
    assert (moved.status, moved.headers["location"]) == (302, f"/run/{name}/")
    assert state(view, name)["state"] == "ended"


def test_a_broken_run_is_a_sentence_among_the_others(view: View) -> None:
    page = get(view, "/").body
    assert "cannot be opened: file is not a database" in page
    assert page.count('class="state ended"') == 3
    reply = state(view, "broken")
    assert reply["state"] == "unreadable"
    assert "file is not a database" in reply["words"]
    assert get(view, "/run/broken/").status == 200
    assert get(view, "/compare?run=first&run=broken").status == 200


def test_a_folder_that_goes_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    site = Site(Watch(tmp_path / "runs"))
    assert b"No run stands in this folder yet" in site.answer("/").content
    (tmp_path / "runs").rmdir()
    reply = site.answer("/")
    assert (reply.status, b"got nothing" in reply.content) == (404, True)
    site.watch.close()


def test_the_list_is_sorted_by_any_column(view: View) -> None:
    for by in ("worst", "?", "run"):
        page = get(view, f"/?by={by}").body
        assert page.count("<tr>") == 5
        assert page.count(' aria-sort="other"') == 1
    assert page.index(">broken<") < page.index(">first<") < page.index(">second<")


def test_intervals_of_before_the_end_are_not_shown_after_it(runs: Path) -> None:
    run, old = read_run(runs / "first"), Latest(rates, ThreadPoolExecutor(1))
    old.value = rates(("fog", 0.1, 0.2))
    assert known(run, old) is None
    assert known(replace(run, state="running"), old) is old.value
    assert known(replace(run, head=""), old) is old.value


def test_wrong_folders_and_ports_are_one_sentence(tmp_path: Path, view: View) -> None:
    for arguments, message in (
        ([str(tmp_path / "none")], "expected a run folder or a folder of runs, got nothing"),
        ([str(tmp_path), "--port", str(view.port)], "--port: cannot listen on port"),
        ([str(tmp_path), "--port", "99999"], "--port: cannot listen on port 99999"),
    ):
        assert message in refused("view", *arguments, "--no-open")


# -- two runs ------------------------------------------------------------------------------


def rates(*rows: tuple[str, float, float], sure: float = 0.95, **more: Any) -> Rates:
    statuses = tuple(
        TargetStatus(id=OfRelation(n), estimate=(a + b) / 2, lower=a, upper=b, certified=True)
        for n, a, b in rows
    )
    given: dict[str, Any] = {"space": "s", "oracle": "o", "unanswered": "loss", "guarantee": "all"}
    return Rates(head="", sure=sure, rows=statuses, **{**given, **more})


def test_disjoint_intervals_decide_and_overlapping_ones_do_not() -> None:
    a = rates(("fog", 0.1, 0.2), ("snow", 0.5, 0.6), ("rain", 0.3, 0.4), ("only a", 0, 1))
    b = rates(("snow", 0.1, 0.4), ("rain", 0.4, 0.5), ("fog", 0.25, 0.3))
    comparison = compare(a, b)
    verdicts = [(p.name, p.verdict, round(p.gap, 9)) for p in comparison.pairs]
    assert verdicts == [
        ("relation fog: error", "higher", 0.05),
        ("relation snow: error", "lower", 0.1),
        ("relation rain: error", "open", 0.0),  # they touch: the rates may be equal
    ]
    assert (comparison.count("lower"), comparison.missing) == (1, 1)
    assert (comparison.single, comparison.unlike) == (False, [])
    assert comparison.sure == pytest.approx(0.9)  # the union bound
    assert together([rates(sure=0.95)] * 20) == pytest.approx(0.0)
    assert together([rates(sure=0.5)] * 3) == 0.0
    contradicted = replace(b, rows=(replace(b.rows[0], invalidated=True),))
    assert [pair.verdict for pair in compare(a, contradicted).pairs] == ["void"]


def test_what_makes_two_runs_unlike_is_named() -> None:
    a, b = rates(("fog", 0.1, 0.2)), rates(("fog", 0.5, 0.6), space="t", guarantee="each")
    comparison = compare(a, b)
    assert comparison.single
    assert "the questions are not the same" in " ".join(comparison.unlike)
    assert "different oracles" in " ".join(compare(a, rates(oracle="other")).unlike)
    assert "unanswered" in " ".join(compare(a, rates(unanswered="both")).unlike)


def test_an_audit_is_not_compared_with_a_comparison() -> None:
    fog = ("fog", 0.1, 0.2)
    of_runs = {"one": rates(fog), "two": rates(fog, compared="B errs")}
    watch: Any = SimpleNamespace(
        run=lambda name: SimpleNamespace(name=name, head="", state="ended"),
        rates=lambda run: SimpleNamespace(value=of_runs[run.name], failure=""),
    )
    reply = Site(watch).answer("/compare?run=one&run=two")
    assert reply.status == 409
    assert b"two compares two models already: B errs. Choose two audits" in reply.content


shares = st.floats(0, 1)


@given(shares, shares, shares, shares, shares, shares)
def test_whatever_the_rates_are_inside_their_intervals_a_verdict_is_right(
    a: float, b: float, c: float, d: float, here: float, there: float
) -> None:
    """While both promises hold, which is all that a verdict may rest on."""
    (low_a, high_a), (low_b, high_b) = sorted((a, b)), sorted((c, d))
    truth_a, truth_b = low_a + here * (high_a - low_a), low_b + there * (high_b - low_b)
    (pair,) = compare(rates(("x", low_a, high_a)), rates(("x", low_b, high_b))).pairs
    if pair.verdict == "lower":
        assert truth_b < truth_a
        assert truth_a - truth_b >= pair.gap - 1e-12
    if pair.verdict == "higher":
        assert truth_b - truth_a >= pair.gap - 1e-12
    assert (pair.verdict == "open") == (low_a <= high_b and low_b <= high_a)


def test_the_page_of_two_runs_says_what_holds(view: View) -> None:
    address = "/compare?run=first&run=second"
    until(lambda: "pairs-chart-data" in get(view, address).body)
    page = " ".join(get(view, address).body.split())
    drawn = block(page, "pairs-chart-data")[""]["data"][0]
    assert len(drawn["x"]) == 6
    letters = [name[0] for name in drawn["y"]]
    assert dict(zip(letters, drawn["marker"]["color"], strict=True)) == {
        "A": COLOURS["accent"],
        "B": COLOURS["third"],
    }  # those of the letters
    assert "hold together</li>" not in page
    assert "All of these statements hold together with probability at least 90.0 %" in page
    assert "described, not certified" in page
    assert all("to check a run" in text for text in (page, get(view, "/").body))
    until(lambda: "chose them from the 3 runs here" in get(view, address).body)
    assert "it is at least 85.0 %" in get(view, address).body


# -- nothing waits -------------------------------------------------------------------------


def test_no_request_waits_for_a_report(runs: Path) -> None:
    watch = Watch(runs)

    def keep_busy() -> None:
        with pytest.raises(AvttError, match="ended before it was done"):
            watch._worker.do(time.sleep, 60)

    site, busy = Site(watch), threading.Thread(target=keep_busy)
    busy.start()
    try:
        time.sleep(0.1)
        began = time.monotonic()
        reply = json.loads(site.answer("/run/first/state").content)
        assert time.monotonic() - began < 2
        assert (reply["report"], reply["note"]) == (None, "the first report is being built")
    finally:
        watch.close()
        busy.join()


def slow(server: View) -> socket.socket:
    """Return a connection whose request has begun and does not end."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    return connection


@pytest.mark.slow
def test_a_page_is_answered_among_many_slow_connections(view: View) -> None:
    with ExitStack() as held:
        for _ in range(256):
            held.enter_context(slow(view))
        began = time.monotonic()
        assert get(view, "/").status == 200
        assert time.monotonic() - began < PATIENCE / 2


def test_a_head_that_drips_in_is_not_waited_for(view: View) -> None:
    with View(view.site.watch.root, patience=0.5) as server, slow(server) as connection:
        connection.settimeout(0.1)
        began, byte = time.monotonic(), b"?"
        while byte and time.monotonic() - began < 8:
            try:
                connection.sendall(b"a")
                byte = connection.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:  # ended, too: with bytes that nobody read
                byte = b""
        assert byte == b""


# -- the process that builds pages -------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_survives_what_fails_and_comes_again_where_it_was_killed() -> None:
    before, worker = os.environ.get(SAFE), Worker()
    with pytest.raises(AvttError, match="ValueError: invalid literal for int"):
        worker.do(int, "no number")
    first = worker.do(os.getpid)
    assert first != os.getpid()
    with pytest.raises(AvttError, match=r"ended before it was done \(exit code 7\); the terminal"):
        worker.do(os._exit, 7)
    assert worker.do(os.getpid) != first
    worker.close()
    assert os.environ.get(SAFE) == before


SHADOWED = ("re", "pickle", "copyreg", "signal", "socket")
"""Modules of which some were imported before the process begins."""
BEGINS = """
import os
from adaptive_vtt.results.view.watching import SAFE, Latest, Report, Watch, Worker
if __name__ == "__main__":
    print(Worker().do(os.getpid), flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_a_worker_imports_nothing_of_the_working_folder_and_ends_with_whoever_began_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    for name in SHADOWED:
        (tmp_path / "work" / f"{name}.py").write_text(f"raise SystemExit('the wrong {name}')")
    (tmp_path / "begins.py").write_text(BEGINS)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "begins.py")],
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout, done.stderr
    until(lambda: not Path(f"/proc/{int(done.stdout)}/cmdline").exists())


class Clock:
    """Time that passes when a test says so, and a report that takes 5 s of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: int | None = None) -> None:
        self.now, self.made, self.failing = 0.0, [], failing  # type: ignore[var-annotated]
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def make(self) -> Report:
        self.now += 5.0
        self.made.append(self.now)
        if len(self.made) == self.failing:
            raise AvttError("the journal was damaged")
        return Report(Path(), f"head {len(self.made)}", 7)

    def asked(self, reports: Latest, head: str) -> None:
        reports.ask(head)
        until(lambda: not reports.busy)
        self.now += 1.0


def test_reports_are_built_no_more_often_than_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes 5 s is followed by 5 s without any, and by none where nothing changed."""
    clock = Clock(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        reports = Latest(clock.make, pool)
        for second in range(40):
            clock.asked(reports, "head 1" if second < 12 else f"grown {second}")
    assert min(later - earlier for earlier, later in pairwise(clock.made)) >= 10
    assert clock.made[0] == 5.0
    assert clock.made[1] > 15  # nothing had changed before


@pytest.mark.parametrize("failing", [1, 2])
def test_what_failed_is_tried_again_and_the_last_good_report_stays_meanwhile(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, failing)
    with ThreadPoolExecutor(1) as pool:
        reports = Latest(clock.make, pool)
        while len(clock.made) < failing:
            clock.asked(reports, f"grown {clock.now}")
        assert (reports.value is None, reports.failure) == (failing == 1, "the journal was damaged")
        while len(clock.made) == failing:
            clock.asked(reports, f"grown {clock.now}")
    assert clock.made[-1] - clock.made[-2] > 10
    assert (reports.failure, reports.value is None) == ("", False)
