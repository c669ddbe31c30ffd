// The answer GP of one concept at a time: answers counted, the mean, and its region.
"use strict";

(() => {
  const beliefs = avtt.read("beliefs-data");
  const chart = document.getElementById("beliefs-chart");
  if (!beliefs || !chart) return;
  const [concept, scale] = ["concept", "scale"].map((n) => document.getElementById(`beliefs-${n}`));
  const cards = [...document.querySelectorAll(".card")];
  const QUARTERS = [["TN", "true negatives"], ["FP", "false positives"], ["FN", "false negatives"], ["TP", "true positives"]];
  const COUNTS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6, -1, -2, -5, -20, -100];

  const root = (y) => Math.sign(y) * Math.sqrt(Math.abs(y));

  const ticks = (low, high, to) => {
    const kept = [];
    for (const c of COUNTS) {
      const y = to(c);
      if (y >= low && y <= high && kept.every(([k]) => Math.abs(k - y) >= (high - low) / 12)) kept.push([y, String(c)]);
    }
    return kept;
  };

  const said = (bin, count) => {
    const a = beliefs.grid[bin];
    const p = (truth) => `${Math.round(100 * Math.min(1, Math.max(0, 2 * a - truth)))}\u202f%`;
    const where = bin === 50 ? "P(yes) 100\u202f% where absent, or 0\u202f% where present" : a < 0.5 ? `absent, P(yes) ${p(0)}` : `present, P(yes) ${p(1)}`;
    return `${count} answer${count === 1 ? "" : "s"}\n${where}`;
  };

  const redraw = () => {
    const i = Number(concept.value);
    const to = scale.value === "root" ? root : (y) => y;
    const { grid } = beliefs;
    const [mean, spread, hits, marginal] = [beliefs.mean[i], beliefs.deviation[i], beliefs.hits[i], beliefs.marginal[i]];
    const high = mean.map((m, k) => to(m + 2 * spread[k]));
    const low = mean.map((m, k) => to(m - 2 * spread[k]));
    const bottom = Math.min(0, ...low);
    const top = Math.max(...high, ...hits.map(([, n]) => to(n)), ...(marginal || []).map(to));
    const pad = (top - bottom) * 0.05;
    const range = [bottom - pad, top + 2.5 * pad];
    const frame = avtt.axes(chart,
      { title: "a = (P(yes) + truth) / 2", range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1].map((v) => [v, String(v)]) },
      { title: "answers per bin", range, ticks: to === root ? ticks(...range, to) : null });
    const { at, edge, narrow } = frame;
    for (const k of [0, 1, 2, 3]) {
      const [x0, x1] = [at.x(k / 4), at.x((k + 1) / 4)];
      const wash = frame.draw("rect", { x: x0, width: x1 - x0, y: edge.top, height: at.y(range[0]) - edge.top, class: k % 3 ? "wash-wrong" : "wash-right" });
      frame.svg.prepend(wash);
      frame.draw("text", { x: (x0 + x1) / 2, y: edge.top + 14, "text-anchor": "middle", class: "halo", style: `fill:var(--${k % 3 ? "bad" : "accent"});font-weight:600` }, `${QUARTERS[k][narrow ? 0 : 1]} ${beliefs.quarters[i][k]}`);
    }
    const path = (y, from = "M") => from + grid.map((a, k) => `${at.x(a).toFixed(1)} ${at.y(y[k]).toFixed(1)}`).join("L");
    const back = grid.map((a, k) => `L${at.x(a).toFixed(1)} ${at.y(low[k]).toFixed(1)}`).reverse().join("");
    frame.draw("path", { d: `${path(high)}${back}Z`, class: "band" });
    frame.draw("path", { d: path(mean.map(to)), class: "line", style: "stroke:var(--accent)", "stroke-width": 2, "stroke-dasharray": "2 5" });
    if (marginal) frame.draw("path", { d: path(marginal.map(to)), class: "line", style: "stroke:var(--third)", "stroke-width": 2.5 });
    const dots = hits.map(([bin, n]) => [at.x(grid[bin]), at.y(to(n)), said(bin, n), bin]);
    for (const [cx, cy] of dots) frame.draw("circle", { cx, cy, r: narrow ? 3 : 3.5, class: "hit" });
    const near = (x, y) => dots.reduce((best, dot) => {
      const far = Math.hypot(dot[0] - x, dot[1] - y);
      return far < 30 && (!best || far < best[0]) ? [far, dot] : best;
    }, null);
    avtt.hover(frame, chart, (x, y) => { const found = near(x, y); return found && found[1]; });
    frame.svg.addEventListener("click", (event) => {
      const box = frame.svg.getBoundingClientRect();
      const found = near(event.clientX - box.left, event.clientY - box.top);
      if (found) location.hash = `#failures?concept=${i}${beliefs.sided && found[1][3] !== 50 ? `&truth=${Number(found[1][3] > 50)}` : ""}`;
    });
    avtt.legend(chart, [
      ["answer GP: 95\u202f% region", "var(--band)", "", true],
      ["its mean", "var(--accent)", "dot"],
      ...(marginal ? [["performance GP, as its marginal", "var(--third)"]] : []),
    ]);
    for (const card of cards) card.setAttribute("aria-pressed", String(card.dataset.concept === concept.value));
  };

  for (const control of [concept, scale]) control.addEventListener("change", redraw);
  for (const card of cards) card.addEventListener("click", () => { concept.value = card.dataset.concept; redraw(); });
  avtt.keep(chart, redraw);
})();
