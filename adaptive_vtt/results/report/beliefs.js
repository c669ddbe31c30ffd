// The answer GP of one concept at a time: answers counted, the mean, and its band.
"use strict";

(() => {
  const beliefs = avtt.read("beliefs-data");
  const chart = document.getElementById("beliefs-chart");
  if (!beliefs || !chart) return;
  const [concept, scale] = ["concept", "scale"].map((n) => document.getElementById(`beliefs-${n}`));
  const cards = [...document.querySelectorAll(".card")];
  const QUARTERS = [["TN", "true negatives"], ["FP", "false positives"], ["FN", "false negatives"], ["TP", "true positives"]];
  const COUNTS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6];
  const [ACCENT, BAD, THIRD, TEXT, BAND] = ["#0b5fad", "#b2420a", "#00725a", "#1b2129", "rgba(11, 95, 173, .2)"];
  const RIGHT = "rgba(11, 95, 173, .06)";
  const WRONG = "rgba(178, 66, 10, .09)";
  const { grid } = beliefs;

  const ticks = (high) => {
    const kept = [];
    for (const c of COUNTS) {
      const y = Math.sqrt(c);
      if (y <= high && kept.every((k) => Math.abs(Math.sqrt(k) - y) >= high / 12)) kept.push(c);
    }
    return { tickvals: kept.map(Math.sqrt), ticktext: kept.map(String) };
  };

  const label = (bin, count) => {
    const a = grid[bin];
    const p = (truth) => `${Math.round(100 * Math.min(1, Math.max(0, 2 * a - truth)))}\u202f%`;
    const where = bin === 50 ? "P(yes) 100\u202f% where absent, or 0\u202f% where present" : a < 0.5 ? `absent, P(yes) ${p(0)}` : `present, P(yes) ${p(1)}`;
    return `${count} answer${count === 1 ? "" : "s"}<br>${where}`;
  };

  const figure = () => {
    const i = Number(concept.value);
    const rooted = scale.value === "root";
    const to = (values) => (rooted ? values.map(Math.sqrt) : values);
    const [mean, low, high, hits, marginal] = [beliefs.mean[i], beliefs.low[i], beliefs.high[i], beliefs.hits[i], beliefs.marginal[i]];
    const counts = hits.map(([, n]) => n);
    const top = 1.12 * Math.max(1, ...to([...high, ...counts, ...(marginal || [])]));
    const narrow = chart.clientWidth < 560;
    const line = (name, y, pen, more) => ({ type: "scatter", mode: "lines", name, x: grid, y: to(y), meta: { y }, line: pen, hoverinfo: "skip", ...more });
    const data = [
      line("95\u202f% band, to", high, { width: 0 }, { showlegend: false }),
      line("answer GP: 95\u202f% band", low, { width: 0, color: BAND }, { fill: "tonexty", fillcolor: BAND }),
      line("its mean", mean, { color: ACCENT, width: 2, dash: "dot" }),
      ...(marginal ? [line("performance GP, as its marginal", marginal, { color: THIRD, width: 2.5 })] : []),
      {
        type: "scatter", mode: "markers", name: "answers counted", x: hits.map(([bin]) => grid[bin]), y: to(counts), meta: { y: counts },
        text: hits.map(([bin, n]) => label(bin, n)), hovertemplate: "%{text}<extra></extra>", marker: { color: TEXT, size: narrow ? 6 : 7 },
      },
    ];
    const quarters = QUARTERS.map((names, k) => ({
      text: `<b>${names[narrow ? 0 : 1]} ${beliefs.quarters[i][k]}</b>`, showarrow: false, x: k / 4 + 1 / 8, y: 1, yref: "paper", yanchor: "top",
      font: { color: k % 3 ? BAD : ACCENT },
    }));
    const washes = QUARTERS.map((_, k) => ({
      type: "rect", layer: "below", x0: k / 4, x1: (k + 1) / 4, yref: "paper", y0: 0, y1: 1, line: { width: 0 }, fillcolor: k % 3 ? WRONG : RIGHT,
    }));
    return { data, layout: {
      annotations: quarters, shapes: washes,
      xaxis: { title: { text: "a = (P(yes) + truth) / 2" }, range: [-0.01, 1.01], tickvals: [0, 0.25, 0.5, 0.75, 1] },
      yaxis: { title: { text: "answers per bin" }, range: [0, top], ...(rooted ? ticks(top) : {}) },
    } };
  };

  // Every concept at a glance: mean and band of every other bin, square roots of counts.
  const sketch = (card) => {
    const i = Number(card.dataset.concept);
    const [mean, low, high] = [beliefs.mean[i], beliefs.low[i], beliefs.high[i]].map((values) => values.filter((_, k) => k % 2 === 0).map(Math.sqrt));
    const [bottom, top] = [-0.5, Math.max(2.5, ...high)];
    const at = (y) => (36 * (1 - (y - bottom) / (top - bottom))).toFixed(1);
    const points = (values) => values.map((y, k) => `${100 * grid[2 * k]} ${at(y)}`);
    card.querySelector(".band").setAttribute("d", `M${[...points(high), ...points(low).reverse()].join("L")}Z`);
    card.querySelector(".mean").setAttribute("d", `M${points(mean).join("L")}`);
    for (const end of ["y1", "y2"]) card.querySelector(".zero").setAttribute(end, at(0));
  };
  cards.forEach(sketch);

  const mark = () => { for (const card of cards) card.setAttribute("aria-pressed", String(card.dataset.concept === concept.value)); };
  const draw = avtt.plot(chart, figure, (point) => {
    if (!point.data.marker) return;
    const [bin] = beliefs.hits[Number(concept.value)][point.pointNumber];
    const side = beliefs.sided && bin !== 50 ? `&truth=${Number(bin > 50)}` : "";
    location.hash = `#failures?concept=${concept.value}${side}`;
  });
  for (const control of [concept, scale]) control.addEventListener("change", () => { mark(); draw(); });
  for (const card of cards) card.addEventListener("click", () => { concept.value = card.dataset.concept; mark(); draw(); });
  mark();
})();
