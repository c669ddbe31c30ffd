// What every section may use: charts in the page's colours, sorting, the gallery, the navigation.
"use strict";

const avtt = {
  redraws: [],

  read(id) {
    const element = document.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  },

  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  },

  // "var(--name)" stands for the page's colour, under keys that name a colour.
  painted(value, key = "") {
    if (Array.isArray(value)) return value.map((v) => avtt.painted(v, key));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, avtt.painted(v, k)]));
    }
    const variable = typeof value === "string" && /color$/.test(key) && /^var\((--[\w-]+)\)$/.exec(value);
    return variable ? avtt.colour(variable[1]) : value;
  },

  merged(base, over) {
    const out = { ...base };
    for (const [key, value] of Object.entries(over || {})) {
      const both = [out[key], value].every((v) => v && typeof v === "object" && !Array.isArray(v));
      out[key] = both ? avtt.merged(out[key], value) : value;
    }
    return out;
  },

  narrow(element) {
    return element.clientWidth < 560;
  },

  draw(element, traces, layout) {
    const narrow = avtt.narrow(element);
    const axis = {
      gridcolor: "var(--grid)", zerolinecolor: "var(--border)", linecolor: "var(--border)",
      title: { standoff: 10, font: { size: narrow ? 11.5 : 13, color: "var(--muted)" } }, tickfont: { color: "var(--muted)" }, fixedrange: true, automargin: true,
    };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11.5 : 13, color: "var(--text)" },
      margin: { l: narrow ? 38 : 54, r: 10, t: 34, b: 46 },
      hoverlabel: { bgcolor: "var(--surface)", bordercolor: "var(--border)", font: { color: "var(--text)" } },
      width: element.clientWidth, height: element.clientHeight, showlegend: true, xaxis: axis, yaxis: axis,
    };
    const config = { displayModeBar: false, doubleClick: false, showTips: false };
    return Plotly.react(element, avtt.painted(traces), avtt.painted(avtt.merged(base, layout)), config);
  },

  // Draws now, and again when the colours or the width change.
  keep(element, redraw) {
    let width = element.clientWidth;
    avtt.redraws.push(redraw);
    redraw();
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      redraw();
    }).observe(element);
  },
};

// -- charts that come whole from Python (section.py: chart) ---------------------------
for (const element of document.querySelectorAll(".chart")) {
  const views = avtt.read(`${element.id}-data`);
  if (!views) continue;
  const chooser = document.querySelector(`[data-view="${element.id}"]`);
  const only = document.querySelector(`[data-only="${element.id}"]`);
  const redraw = () => {
    const figure = views[chooser ? chooser.value : Object.keys(views)[0]];
    const wanted = only ? only.value : "*";
    const traces = figure.data.map((trace) => {
      if (!("meta" in trace)) return trace;
      const visible = wanted === "*" || wanted === trace.meta;
      return { ...trace, visible, showlegend: wanted !== "*", line: { ...trace.line, width: wanted === "*" ? 1 : trace.line.width } };
    });
    avtt.draw(element, traces, figure.layout);
  };
  for (const control of [chooser, only]) if (control) control.addEventListener("change", redraw);
  avtt.keep(element, redraw);
}

// -- sortable tables -------------------------------------------------------------------
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? parseFloat(cell.dataset.value) : cell.textContent.trim();
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") !== "descending" && (column > 0 || head.hasAttribute("aria-sort"));
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
    const known = rows.filter(([v]) => !Number.isNaN(v)).sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
    const unknown = rows.filter(([v]) => Number.isNaN(v));
    table.tBodies[0].append(...[...known, ...unknown].map(([, row]) => row));
  }));
}

// -- gallery ---------------------------------------------------------------------------
for (const gallery of document.querySelectorAll(".gallery")) {
  const name = gallery.id.replace("-list", "");
  const [concept, relation, more, count] = ["concept", "relation", "more", "count"].map((n) => document.getElementById(`${name}-${n}`));
  let limit = Number(gallery.dataset.first);
  const show = () => {
    const found = [...gallery.children].filter((item) =>
      (!relation.value || item.dataset.relation === relation.value) &&
      (!concept.value || item.dataset.concepts.includes(` ${concept.value} `)));
    for (const item of gallery.children) item.hidden = true;
    for (const item of found.slice(0, limit)) item.hidden = false;
    more.hidden = found.length <= limit;
    more.textContent = `Show all ${found.length}`;
    count.textContent = `${Math.min(limit, found.length)} of ${found.length} shown`;
  };
  for (const control of [concept, relation]) control.addEventListener("change", show);
  more.addEventListener("click", () => { limit = Infinity; show(); });
  show();
}

// -- navigation ------------------------------------------------------------------------
const links = new Map([...document.querySelectorAll(".bar a")].map((a) => [a.hash.slice(1), a]));
const mark = () => {
  const passed = [...links.keys()].filter((id) => document.getElementById(id).getBoundingClientRect().top < 140);
  const end = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 4 && window.scrollY > 0;
  const here = end ? [...links.keys()].pop() : passed.pop() || links.keys().next().value;
  for (const [id, link] of links) id === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
};
window.addEventListener("scroll", mark, { passive: true });
mark();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => avtt.redraws.forEach((redraw) => redraw()));
