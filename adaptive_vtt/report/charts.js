// The two charts whose figures depend on several choices: answers per concept, and the map.
"use strict";

// -- answers per concept ---------------------------------------------------------------
(() => {
  const beliefs = avtt.read("beliefs-data");
  const chart = document.getElementById("beliefs-chart");
  const [concept, scale] = ["concept", "scale"].map((n) => document.getElementById(`beliefs-${n}`));
  const cards = [...document.querySelectorAll(".card")];
  const quarters = [["TN", "true negatives"], ["FP", "false positives"], ["FN", "false negatives"], ["TP", "true positives"]];
  const counts = [-5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6];

  const root = (y) => Math.sign(y) * Math.sqrt(Math.abs(y));

  const ticks = (low, high, to) => {
    const gap = (high - low) / 14;
    const kept = [];
    for (const c of [0, ...counts.filter((c) => c > 0), ...counts.filter((c) => c < 0).reverse()]) {
      const y = to(c);
      if (y >= low && y <= high && kept.every((k) => Math.abs(to(k) - y) >= gap)) kept.push(c);
    }
    return { tickmode: "array", tickvals: kept.map(to), ticktext: kept.map(String) };
  };

  const said = (bin, count) => {
    const a = beliefs.grid[bin];
    const p = (truth) => Math.min(1, Math.max(0, 2 * a - truth)).toFixed(2);
    const where = bin === 50 ? "P(yes) 1 where absent, or 0 where present" : a < 0.5 ? `absent, P(yes) ${p(0)}` : `present, P(yes) ${p(1)}`;
    return `a = ${a.toFixed(2)}: ${where}<br>${count} answer${count === 1 ? "" : "s"}`;
  };

  const redraw = () => {
    const i = Number(concept.value);
    const to = scale.value === "root" ? root : (y) => y;
    const [grid, mean, spread, hits] = [beliefs.grid, beliefs.mean[i], beliefs.deviation[i], beliefs.hits[i]];
    const high = mean.map((m, k) => to(m + 2 * spread[k]));
    const low = mean.map((m, k) => to(m - 2 * spread[k]));
    const points = hits.map(([, n]) => to(n));
    const bottom = Math.min(0, ...low);
    const top = Math.max(...high, ...points);
    const pad = (top - bottom) * 0.05;
    const narrow = avtt.narrow(chart);
    const wash = (k) => ({
      type: "rect", xref: "x", yref: "paper", x0: k / 4, x1: (k + 1) / 4, y0: 0, y1: 1, layer: "below",
      line: { width: 0 }, fillcolor: k % 3 ? "var(--wrong-wash)" : "var(--right-wash)",
    });
    const label = ([brief, full], k) => ({
      x: k / 4 + 0.125, xref: "x", y: 1, yref: "paper", yanchor: "bottom", showarrow: false,
      text: `${narrow ? brief : full} <b>${beliefs.quarters[i][k]}</b>`, font: { color: k % 3 ? "var(--bad)" : "var(--accent)" },
    });
    const traces = [
      { type: "scatter", mode: "lines", name: "95 % region", x: [...grid, ...[...grid].reverse()], y: [...high, ...low.reverse()], fill: "toself", fillcolor: "var(--band)", line: { width: 0 }, hoverinfo: "skip" },
      { type: "scatter", mode: "lines", name: "mean", x: grid, y: mean.map(to), line: { color: "var(--accent)", width: 2, dash: "dot" }, hoverinfo: "skip" },
      { type: "scatter", mode: "markers", name: "answers counted", x: hits.map(([b]) => grid[b]), y: points, text: hits.map(([b, n]) => said(b, n)), hovertemplate: "%{text}<extra></extra>", marker: { color: "var(--text)", size: narrow ? 5 : 6, line: { color: "var(--surface)", width: 1 } }, cliponaxis: false },
    ];
    avtt.draw(chart, traces, {
      xaxis: { title: { text: narrow ? "a = (P(yes) + truth) / 2" : "answer coordinate a = (P(yes) + truth) / 2" }, range: [0, 1], tickvals: [0, 0.25, 0.5, 0.75, 1], showgrid: false, zeroline: false },
      yaxis: { title: { text: narrow ? "" : "answers per bin" }, range: [bottom - pad, top + pad], zeroline: true, ...(to === root ? ticks(bottom, top, to) : {}) },
      margin: { b: narrow ? 56 : 46 }, shapes: [0, 1, 2, 3].map(wash), annotations: quarters.map(label), hovermode: "closest",
      legend: { orientation: "h", x: 0, y: narrow ? -0.26 : -0.2, yanchor: "top" },
    });
    for (const card of cards) card.setAttribute("aria-pressed", String(card.dataset.concept === concept.value));
  };

  for (const control of [concept, scale]) control.addEventListener("change", redraw);
  for (const card of cards) card.addEventListener("click", () => { concept.value = card.dataset.concept; redraw(); });
  avtt.keep(chart, redraw);
})();

// -- relation by severity --------------------------------------------------------------
(() => {
  const map = avtt.read("map-data");
  const chart = document.getElementById("map-chart");
  const [figure, concept] = ["figure", "concept"].map((n) => document.getElementById(`map-${n}`));
  const COUNTS = ["true negatives", "false positives", "false negatives", "true positives", "unanswered"];

  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const mix = (a, b, share) => a.map((v, i) => Math.round(v + (b[i] - v) * share));
  const light = (c) => c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const css = (c) => `rgb(${c.join(",")})`;
  // The darker or lighter ink, whichever stands out more.
  const ink = (c) => ((light(c) + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff");

  const cellsNow = () => {
    const f = Number(figure.value);
    const kappa = f === map.figures.length - 1;
    return (map.cells[concept.value] || []).map((row) => {
      const counts = row.slice(2, 7);
      const value = row[7 + f];
      return {
        r: row[0], s: row[1], counts, value, all: row.slice(7),
        n: map.figures[f].base.reduce((sum, k) => sum + counts[k], 0),
        bad: value === null ? 0 : f === 0 ? value : 1 - Math.max(0, value),
        text: value === null ? "–" : kappa ? value.toFixed(2) : `${Math.round(100 * value)}\u202f%`,
      };
    });
  };

  const about = (cell) => {
    const name = `<b>${map.names[cell.r]}</b>, severity ${map.severities[cell.s]}`;
    const figures = map.figures.map((f, i) => `${f.name}: ${cell.all[i] === null ? "–" : cell.all[i].toFixed(2)}`);
    return [name, ...COUNTS.map((c, i) => `${c}: ${cell.counts[i]}`), ...figures].join("<br>");
  };

  const redraw = () => {
    const narrow = avtt.narrow(chart);
    const found = new Map(cellsNow().map((cell) => [`${cell.r},${cell.s}`, cell]));
    const solid = [...found.values()].filter((c) => c.n >= map.few && c.value !== null).map((c) => c.bad);
    const worst = Math.max(0.1, ...(solid.length ? solid : [...found.values()].map((c) => c.bad)));
    const [low, high, empty] = ["--heat-low", "--heat-high", "--surface"].map((n) => rgb(avtt.colour(n)));
    const grid = (value) => map.names.map(() => map.severities.map(() => value));
    const [z, hover] = [grid(null), grid("")];
    const colours = [];
    const marks = { x: [], y: [], text: [], ink: [] };
    for (const [r, s] of map.variants) {
      const cell = found.get(`${r},${s}`);
      const fade = !cell || cell.value === null ? 1 : cell.n < map.few ? 0.7 : cell.n < 3 * map.few ? 0.3 : 0;
      const colour = cell && cell.value !== null ? mix(mix(low, high, Math.min(1, cell.bad / worst)), empty, fade) : rgb(avtt.colour("--page"));
      z[r][s] = colours.length;
      colours.push(css(colour));
      hover[r][s] = cell ? about(cell) : `<b>${map.names[r]}</b>, severity ${map.severities[s]}<br>not asked`;
      marks.x.push(s);
      marks.y.push(r);
      marks.text.push(cell ? `${cell.value === null ? "–" : `<b>${cell.text}</b>`}<br><i>n</i> ${cell.n}` : "–");
      marks.ink.push(ink(colour));
    }
    const last = Math.max(1, colours.length - 1);
    const scale = colours.map((c, i) => [i / last, c]);
    if (colours.length === 1) scale.push([1, colours[0]]);
    const height = 58 + 46 * map.names.length;
    chart.style.height = `${height}px`;
    avtt.draw(chart, [
      { type: "heatmap", z, zmin: 0, zmax: last, colorscale: scale, showscale: false, xgap: 3, ygap: 3, text: hover, hovertemplate: "%{text}<extra></extra>", hoverongaps: false },
      { type: "scatter", mode: "text", x: marks.x, y: marks.y, text: marks.text, textfont: { color: marks.ink, size: narrow ? 10.5 : 12.5 }, hoverinfo: "skip" },
    ], {
      height, showlegend: false, hovermode: "closest", margin: { t: 6, b: 46, l: 20, r: 4 },
      xaxis: { title: { text: "severity" }, tickvals: map.severities.map((_, i) => i), ticktext: map.severities.map(String), range: [-0.5, map.severities.length - 0.5], showgrid: false, zeroline: false, showline: false, ticks: "" },
      yaxis: { tickvals: map.names.map((_, i) => i), ticktext: map.relations, range: [map.names.length - 0.5, -0.5], showgrid: false, zeroline: false, showline: false, ticks: "" },
    });
  };

  for (const control of [figure, concept]) control.addEventListener("change", redraw);
  avtt.keep(chart, redraw);
})();
