// Plotly figures: plotly.js is brought before the first of them is drawn. Each is drawn in the page's
// colours when it is seen or the browser is idle, again when its width or those colours change.
"use strict";

(() => {
  // The colours of figures, in light, and the variables of the style that have them now.
  const COLOURS = { ...{/* PALETTE */}, "#000000": "--text" };
  const NARROW = 560;
  const shown = new Set();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)").matches;

  // -- plotly.js ---------------------------------------------------------------------------
  let brought = null;
  const bring = () => (brought ||= fetched().then(() => {
    if (!window.Plotly) throw new Error("plotly.js did not start");
  }));

  const fetched = async () => {
    if (window.Plotly) return;
    const holder = document.getElementById("plotly-js");
    const script = document.createElement("script");
    if (holder.dataset.src) {
      script.src = holder.dataset.src;
      if (holder.dataset.integrity) Object.assign(script, { integrity: holder.dataset.integrity, crossOrigin: "anonymous" });
      await new Promise((done, failed) => {
        script.onload = done;
        script.onerror = () => failed(new Error(`${holder.dataset.src} could not be loaded`));
        document.head.append(script);
      });
      return;
    }
    script.textContent = await avtt.inflated("plotly-js");
    document.head.append(script); // runs at once: the page's policy has its hash
  };

  // -- the page's colours --------------------------------------------------------------------
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const coloured = (value) => {
    if (typeof value === "string") return value in COLOURS ? variable(COLOURS[value]) : value;
    if (Array.isArray(value)) return typeof value[0] === "number" && typeof value[1] !== "string" ? value : value.map(coloured);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, PLAIN.has(k) ? v : coloured(v)]));
  };
  const PLAIN = new Set(["name", "text", "x", "y", "ticktext", "customdata", "meta"]); // words, whatever they look like

  const template = () => {
    const [text, grid, surface, border] = ["--text", "--grid", "--surface", "--border"].map(variable);
    const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: border, tickcolor: border, automargin: true, zerolinewidth: 1, title: { standoff: 8, font: { size: 13 } } };
    return { layout: {
      paper_bgcolor: surface, plot_bgcolor: surface, font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
      colorway: ["--accent", "--bad", "--third", "--muted", "--text"].map(variable), xaxis: { ...axis, showline: true }, yaxis: { ...axis, ticks: "outside", tickcolor: surface },
      hoverlabel: { bgcolor: surface, bordercolor: border, font: { color: text }, align: "left", namelength: -1 },
    } };
  };

  // -- drawing -------------------------------------------------------------------------------
  // As plotly_text.py writes words, and back.
  const plainText = (words) => String(words ?? "").replaceAll("&#123;", "{").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const escaped = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("%{", "%&#123;");
  const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

  // The figure as it is drawn this wide: names that fit, room for the legend, no zoom under a finger.
  const fitted = (figure, width) => {
    const narrow = width < NARROW;
    const { data, layout } = panelled(coloured(figure), width);
    const most = Math.floor(width / 8) - 8;
    const listed = data.filter((trace) => trace.showlegend !== false && trace.name);
    const legend = layout.showlegend ?? listed.length > 1;
    for (const trace of data) {
      const name = plainText(trace.name);
      if (name.length <= most || !trace.hovertemplate) continue;
      trace.hovertemplate = trace.hovertemplate.replace(/<extra>.*<\/extra>/, "") + "<extra>%{customdata}</extra>";
      trace.customdata = Array(trace.x.length).fill(escaped(cut(name, 120)));
      trace.name = escaped(cut(name, most));
    }
    const bars = narrow ? data.map((t) => (t.marker && t.marker.showscale ? t.marker : t.colorscale ? t : null)).filter(Boolean) : [];
    for (const holder of bars) holder.colorbar = { ...holder.colorbar, orientation: "h", x: 0.5, y: 1, yanchor: "bottom", len: 1, nticks: 5 };
    const column = (Math.max(0, ...listed.map((t) => plainText(t.name).length)) + 6) * 7.6;
    const rows = legend ? Math.ceil(listed.length / Math.max(1, Math.floor((width - 80) / column))) : 0;
    const height = (layout.height || (narrow ? 300 : 360)) + 20 * Math.max(0, rows - 2); // else as high as before it was drawn
    const margin = { l: narrow ? 48 : 62, r: 14, t: bars.length ? 54 : layout.title ? 48 : 14, b: (layout.grid || (layout.xaxis && layout.xaxis.title && layout.xaxis.title.text) ? 50 : 30) + 22 * rows, ...layout.margin };
    const below = { orientation: "h", x: 0, xanchor: "left", y: 0, yref: "container", yanchor: "bottom", traceorder: "normal" };
    return [data, {
      dragmode: coarse ? false : "zoom", hovermode: "closest", ...layout, template: template(), width, height, margin, showlegend: legend,
      legend: { ...below, ...layout.legend }, xaxis: { nticks: narrow ? 5 : 9, ...named(layout.xaxis, data.flatMap((t) => t.x), width) },
      yaxis: named(layout.yaxis, data.flatMap((t) => t.y), width),
    }];
  };

  // Small multiples: as many side by side as there is room for.
  const PANEL = [250, 150];
  const panelled = ({ data, layout }, width) => {
    if (!layout.grid) return { data, layout };
    const count = layout.grid.rows * layout.grid.columns;
    const names = layout.annotations.length;
    const columns = Math.min(names, Math.max(width < NARROW ? 2 : 1, Math.floor(width / PANEL[0])), count);
    const rows = Math.ceil(names / columns);
    const most = Math.floor(width / columns / 8);
    const annotations = layout.annotations.map((note) => ({ ...note, text: escaped(cut(plainText(note.text), most)) }));
    return { data, layout: { ...layout, annotations, grid: { ...layout.grid, rows, columns }, height: 90 + PANEL[1] * rows, margin: { t: 26, l: 46 } } };
  };

  // The axis; names of categories that are longer than a third of the width break after an underscore
  // or space; a part that is still too long, and a name of too many lines, are cut in their middle.
  const middle = (words, most) => (words.length > most ? `${words.slice(0, Math.floor(most / 2))}…${words.slice(words.length - Math.floor(most / 2))}` : words);
  const short = (name, width) => {
    const [words, most, lines] = [plainText(name), Math.floor(width / 24), [""]];
    for (const part of words.split(/(?<=[_\s/])/)) {
      if (lines.at(-1) && (lines.at(-1) + part).trimEnd().length > most) lines.push(part);
      else lines.push(lines.pop() + part);
    }
    return (lines.length > 3 ? [words] : lines).map((line) => escaped(middle(line.trimEnd(), most))).join("<br>");
  };
  const named = (axis = {}, values, width) => {
    if (axis.ticktext) return { ...axis, ticktext: axis.ticktext.map((name) => short(name, width)) };
    if (axis.type !== "category") return axis;
    const tickvals = [...new Set(values)];
    return { ...axis, tickvals, ticktext: tickvals.map((name) => short(name, width)) };
  };

  const CONFIG = { displayModeBar: false, displaylogo: false, showTips: false, doubleClick: "reset" };

  // Keeps a figure in its place: ``make`` gives it, {data, layout}, whenever it is drawn; ``clicked`` is
  // given the point that was clicked, or on which Enter was pressed. ``make`` may take its time.
  avtt.plot = (element, make, clicked = null) => {
    const place = element.closest(".plot");
    const state = { element, make, place, clicked, curve: 0, point: -1, seen: false };
    const draw = () => {
      if (!state.seen || !element.clientWidth) return null;
      return bring().then(make).then((figure) => {
        state.figure = figure;
        const [data, layout] = fitted(figure, element.clientWidth);
        return window.Plotly.react(element, data, layout, CONFIG);
      }).then(() => ready(state)).catch((error) => failed(state, error));
    };
    state.draw = draw;
    shown.add(state);
    // once it comes into view, or before that when nothing else is to be done: it may be printed
    const first = () => { if (!state.seen) { state.seen = true; draw(); } };
    avtt.seen(element, first);
    window.addEventListener("beforeprint", first);
    window.requestIdleCallback?.(first);
    let width = 0;
    new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      draw();
    }).observe(element);
    element.addEventListener("keydown", (event) => step(state, event));
    for (const button of place.querySelectorAll("[data-save]")) button.addEventListener("click", () => SAVE[button.dataset.save](state));
    return draw;
  };

  // Once a figure is drawn for the first time.
  const waiting = new Map();
  avtt.drawn = (element, then) => waiting.set(element, [...(waiting.get(element) || []), then]);

  const ready = (state) => {
    const { element, place } = state;
    state.curve = 0;
    state.point = -1;
    state.at = null;
    const whole = place.querySelector("[data-save=whole]");
    whole.hidden = true;
    element.style.minHeight = `${element.layout.height}px`;
    if (element.dataset.drawn) return;
    element.dataset.drawn = "yes";
    for (const button of place.querySelectorAll("[data-save]")) button.disabled = false;
    if (state.clicked) element.on("plotly_click", ({ points }) => state.clicked(points[0]));
    for (const then of waiting.get(element) || []) then();
    element.on("plotly_relayout", (change) => {
      const keys = Object.keys(change);
      if (keys.some((k) => k.includes("range["))) whole.hidden = false;
      if (keys.some((k) => k.includes("autorange"))) whole.hidden = true;
    });
  };

  const failed = ({ element, place }, error) => {
    const text = place.querySelector(".plot-text");
    const table = place.querySelector(".plain");
    element.hidden = true;
    place.querySelector(".plot-tools").hidden = true;
    text.classList.add("caption");
    text.textContent = `This figure cannot be drawn here: ${error.message}${table ? "; the table has its numbers." : "."}`;
    if (table) table.open = true;
  };

  const all = () => { for (const state of shown) state.draw(); };
  dark.addEventListener("change", all);
  document.addEventListener("changed", all); // the page brought other data

  const heights = (trace) => (trace.meta && trace.meta.y) || trace.y; // where a root of them is drawn

  // -- keys: left and right go through the points, up and down through the lines --------------------
  const step = (state, event) => {
    const { element } = state;
    const ways = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -Infinity], End: [0, Infinity] };
    if (event.key === "Escape" && element.dataset.drawn) window.Plotly.Fx.unhover(element);
    if (event.key === "Enter" && state.clicked && state.at) state.clicked(state.at);
    if (!(event.key in ways) || !element.dataset.drawn || event.target !== element) return;
    event.preventDefault();
    const [line, point] = ways[event.key];
    if (element.data[0] && element.data[0].z) { cellStep(state, line, point); return; }
    const curves = element.data.flatMap((trace, k) => (Array.isArray(trace.y) && trace.hoverinfo !== "skip" ? [k] : []));
    if (!curves.length) return;
    state.curve = (state.curve + line + curves.length) % curves.length;
    const curve = curves[state.curve];
    const trace = element.data[curve];
    state.point = Math.min(Math.max(state.point + point, 0), trace.x.length - 1);
    const { xaxis = {}, yaxis = {} } = element.layout;
    const inWords = (value, axis) => (typeof value === "number" ? `${Number(value.toFixed(2)).toLocaleString("en")}${axis.ticksuffix || ""}` : plainText(value ?? "nothing"));
    const about = xaxis.title ? ` ${plainText(xaxis.title.text)}` : "";
    const [x, y] = [trace.x[state.point], heights(trace)[state.point]];
    const name = trace.customdata && typeof trace.customdata[0] === "string" ? trace.customdata[0] : trace.name;
    state.place.querySelector(".plot-text").textContent = `${plainText(name)}: ${inWords(y, yaxis)}, ${inWords(x, xaxis)}${about}`;
    if (trace.hovertemplate && trace.hovertemplate.startsWith("%{text}")) state.place.querySelector(".plot-text").textContent = lines(trace.text[state.point]);
    element.dataset.at = state.point;
    state.at = { data: trace, curveNumber: curve, pointNumber: state.point };
    window.Plotly.Fx.hover(element, [{ curveNumber: curve, pointNumber: state.point }], [trace.xaxis, trace.yaxis].every((a) => a) ? [`${trace.xaxis}${trace.yaxis}`] : undefined);
  };

  // Of a map: left and right through its columns, up and down through its rows.
  const cellStep = (state, down, right) => {
    const { element } = state;
    const [map] = element.data;
    const within = (k, count) => Math.min(Math.max(k, 0), count - 1);
    const [row, column] = state.cell || [map.z.length, -1];
    state.cell = [within(row - (state.cell ? down : 1), map.z.length), within(column + (state.cell ? right : 1), map.x.length)];
    state.place.querySelector(".plot-text").textContent = lines(map.text[state.cell[0]][state.cell[1]]);
    state.at = { data: map, curveNumber: 0, pointNumber: state.cell };
    window.Plotly.Fx.hover(element, [{ curveNumber: 0, pointNumber: state.cell }]);
  };
  const lines = (words) => plainText(words).replaceAll("<br>", "; ");

  // -- saving --------------------------------------------------------------------------------
  const saved = (address, name) => {
    const link = document.createElement("a");
    Object.assign(link, { href: address, download: name });
    link.click();
  };

  // A spreadsheet takes text that begins with = + - @ for a formula: an apostrophe keeps it text.
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const words = plainText(value);
    const inert = /^'*[=+\-@\t\r]/.test(words) ? `'${words}` : words;
    return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
  };

  // Every point of what is shown: of lines and bars a row each, of a map a row per cell.
  avtt.csv = ({ data, layout }) => {
    const titled = (axis, other) => (layout[axis] && layout[axis].title ? `${plainText(layout[axis].title.text)}${layout[axis].ticksuffix ? ` (${layout[axis].ticksuffix.trim()})` : ""}` : other) || other;
    const rows = [["series", titled("xaxis", "x"), titled("yaxis", "y"), ...(data.some((t) => t.z) ? ["value"] : [])]];
    for (const trace of data) {
      const name = [trace.meta && trace.meta.panel, trace.name].filter(Boolean).join(": ");
      if (trace.z) trace.z.forEach((line, j) => line.forEach((value, i) => rows.push([name, trace.x[i], trace.y[j], value])));
      else trace.x.forEach((x, i) => rows.push([name, x, heights(trace)[i]]));
    }
    return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
  };

  const SAVE = {
    async png({ element }) {
      const { width, height } = element.layout;
      saved(await window.Plotly.toImage(element, { format: "png", scale: 2, width, height }), `${element.id}.png`);
    },
    csv({ element, figure }) {
      const address = URL.createObjectURL(new Blob([avtt.csv(figure)], { type: "text/csv" }));
      saved(address, `${element.id}.csv`);
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    },
    whole({ element, draw }) {
      element.focus();
      draw();
    },
  };

  // -- the figures of plots.py ---------------------------------------------------------------
  // Of the lines that have an ``only``, the one that was chosen, or all of them thin.
  const chosen = (figure, wanted) => ({
    layout: figure.layout,
    data: figure.data.filter(({ meta }) => !meta || !("only" in meta) || wanted === "*" || wanted === meta.only)
      .map((trace) => (trace.meta && "only" in trace.meta && wanted === "*" ? { ...trace, line: { ...trace.line, width: 1 }, showlegend: false } : trace)),
  });

  for (const element of document.querySelectorAll(".chart")) {
    if (!document.getElementById(`${element.id}-data`)) continue;
    const chooser = document.querySelector(`[data-view="${element.id}"]`);
    const only = document.querySelector(`[data-only="${element.id}"]`);
    const draw = avtt.plot(element, () => {
      const views = avtt.read(`${element.id}-data`);
      return chosen(views[chooser ? chooser.value : Object.keys(views)[0]], only ? only.value : "*");
    });
    for (const control of [chooser, only]) if (control) control.addEventListener("change", draw);
  }
})();
