// The intervals of all targets, one below the other; names stand above them where it is narrow.
"use strict";

(() => {
  const certified = avtt.read("certified-data");
  const chart = document.getElementById("certified-chart");
  if (!certified) return;
  const { rows, limit } = certified;

  const about = (row) => {
    const [estimate, raw, belief] = row.shown;
    return [
      `<b>${row.name}</b>`, `certified: ${row.span}`, `estimate: ${estimate}`, `raw mean: ${raw}`,
      ...(row.belief === null ? [] : [`answer GP’s belief: ${belief}`]),
      `${row.seen} questions seen`, row.state,
    ].join("<br>");
  };

  const redraw = () => {
    const narrow = avtt.narrow(chart);
    const pitch = narrow ? 38 : 26;
    const height = pitch * rows.length + (narrow ? 56 : 52);
    const traces = [];
    const places = rows.map((row, y) => ({ row, y })).filter(({ row }) => !("heading" in row));
    const drop = narrow ? 0.22 : 0;
    const bars = (settled) => {
      const [x, y] = [[], []];
      for (const { row, y: at } of places) if (row.settled === settled) { x.push(row.lower, row.upper, null); y.push(at + drop, at + drop, null); }
      traces.push({ type: "scatter", mode: "lines", x, y, hoverinfo: "skip", line: { color: settled ? "var(--accent)" : "var(--bad)", width: settled ? 5 : 2.5 } });
    };
    const marks = (value, marker, kept = () => true) => {
      const some = places.filter(({ row }) => row[value] !== null && kept(row));
      traces.push({
        type: "scatter", mode: "markers", x: some.map(({ row }) => row[value]), y: some.map(({ y }) => y + drop),
        text: some.map(({ row }) => about(row)), hovertemplate: "%{text}<extra></extra>", marker, cliponaxis: false,
      });
    };
    bars(false);
    bars(true);
    marks("estimate", { symbol: "circle", size: 10, color: "var(--accent)", line: { color: "var(--surface)", width: 1.5 } }, (row) => row.settled);
    marks("estimate", { symbol: "square", size: 8, color: "var(--surface)", line: { color: "var(--bad)", width: 2 } }, (row) => !row.settled);
    marks("belief", { symbol: "x-thin", size: 8, line: { color: "var(--text)", width: 2 } });
    marks("raw", { symbol: "diamond-open", size: 10, color: "var(--third)", line: { color: "var(--third)", width: 2 } });

    const far = Math.max(0.1, limit || 0, ...places.flatMap(({ row }) => [row.upper, row.raw || 0, row.belief || 0]));
    const headings = rows.flatMap((row, y) => "heading" in row ? [{
      x: 0, xref: "paper", xanchor: "left", y, yanchor: "middle", showarrow: false, align: "left",
      text: `<b>${narrow ? row.heading.split(":")[0] : row.heading}</b>`, font: { color: "var(--muted)" }, bgcolor: "var(--surface)",
    }] : []);
    const sign = (row) => row.astray ? '<span style="color:FLAG"><b>! </b></span>'.replace("FLAG", avtt.colour("--bad")) : "";
    const names = narrow ? places.map(({ row, y }) => ({
      x: 0, xref: "paper", xanchor: "left", y: y - 0.22, yanchor: "middle", showarrow: false, text: `${sign(row)}${row.label}`, bgcolor: "var(--surface)", borderpad: 0,
    })) : [];
    const lines = limit === null ? [] : [{ type: "line", x0: limit, x1: limit, yref: "paper", y0: 0, y1: 1, line: { color: "var(--third)", width: 1.5, dash: "dash" } }];
    chart.style.height = `${height}px`;
    avtt.draw(chart, traces, {
      height, showlegend: false, hovermode: "closest", shapes: lines, annotations: [...headings, ...names],
      margin: { t: 4, b: 44, l: narrow ? 6 : 20, r: narrow ? 12 : 16 },
      xaxis: { title: { text: narrow ? "error rate" : "error rate (mean loss)" }, range: [0, Math.min(1, far * 1.04)], zeroline: true, nticks: narrow ? 6 : 11 },
      yaxis: {
        range: [rows.length - 0.4, -0.6], showgrid: false, zeroline: false, showline: false, ticks: "outside", ticklen: narrow ? 0 : 9, tickcolor: "rgba(0,0,0,0)",
        tickvals: narrow ? [] : places.map(({ y }) => y), ticktext: places.map(({ row }) => sign(row) + row.label),
      },
    });
  };

  avtt.keep(chart, redraw);
})();
