// Lines over two axes, as section.py describes them, drawn as SVG in the page's colours.
"use strict";

(() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = { dot: "2 5", dash: "7 5" };

  const draw = (parent, tag, attributes, text = "") => {
    const element = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  };

  // Round numbers that divide a range into at most so many parts.
  const ticks = (low, high, most) => {
    const raw = (high - low) / most || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step) found.push(Math.abs(v) < step * 1e-6 ? 0 : v);
    return found;
  };

  const logTicks = (low, high) => [1e-3, 1e-2, 1e-1, 1].flatMap((p) => [p, 2 * p, 5 * p]).filter((v) => v >= low && v <= high);

  const worded = (axis) => (value) => {
    const shown = axis.percent ? 100 * value : value;
    const digits = Math.abs(shown) >= 100 || Number.isInteger(shown) ? 0 : Math.abs(shown) >= 1 ? 1 : 3;
    return `${shown.toLocaleString("en", { maximumFractionDigits: digits })}${axis.percent ? "\u202f%" : ""}`;
  };

  // A frame with axes; gives where a value lies, and the SVG. axis: title, range, ticks, log, percent.
  avtt.axes = (element, x, y) => {
    const width = element.clientWidth;
    const narrow = width < 560;
    const height = narrow ? 300 : 360;
    const edge = { left: narrow ? 46 : 60, right: 12, top: 12, bottom: 46 };
    element.replaceChildren();
    const svg = draw(element, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const scale = (axis, from, to) => {
      const f = axis.log ? Math.log : (v) => v;
      const [low, high] = axis.range.map(f);
      return (v) => from + ((f(v) - low) / (high - low || 1)) * (to - from);
    };
    const at = { x: scale(x, edge.left, width - edge.right), y: scale(y, height - edge.bottom, edge.top) };
    const marks = (axis, most) => axis.ticks || (axis.log ? logTicks(...axis.range) : ticks(...axis.range, most)).map((v) => [v, worded(axis)(v)]);
    for (const [value, text] of marks(y, 6)) {
      const place = at.y(value);
      draw(svg, "line", { x1: edge.left, x2: width - edge.right, y1: place, y2: place, class: "grid" });
      draw(svg, "text", { x: edge.left - 8, y: place + 4, "text-anchor": "end" }, text);
    }
    for (const [value, text] of marks(x, narrow ? 5 : 9)) {
      draw(svg, "text", { x: at.x(value), y: height - edge.bottom + 18, "text-anchor": "middle" }, text);
    }
    draw(svg, "line", { x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom, class: "axis" });
    draw(svg, "text", { x: (edge.left + width - edge.right) / 2, y: height - 8, "text-anchor": "middle", class: "title" }, x.title);
    if (y.title) draw(svg, "text", { transform: `translate(13 ${(edge.top + height - edge.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "title" }, y.title);
    return { svg, at, edge, width, height, narrow, draw: (tag, attributes, text) => draw(svg, tag, attributes, text) };
  };

  avtt.legend = (element, entries) => {
    const legend = document.createElement("ul");
    legend.className = "key legend";
    for (const [name, colour, dash, band] of entries) {
      const item = document.createElement("li");
      const svg = draw(item, "svg", { viewBox: "0 0 24 12", width: 24, "aria-hidden": "true" });
      draw(svg, "path", { d: "M1 6H23", style: `stroke:${colour};stroke-width:${band ? 10 : 3}`, "stroke-dasharray": DASHES[dash] || "none" });
      item.append(name);
      legend.append(item);
    }
    element.append(legend);
  };

  // A note that follows the pointer: near(x, y) gives [x, y, text] of what is closest, or null.
  avtt.hover = (frame, element, near) => {
    const note = document.createElement("div");
    note.className = "hover";
    note.hidden = true;
    element.append(note);
    const dot = draw(frame.svg, "circle", { r: 4.5, class: "hover-dot", visibility: "hidden" });
    const hide = () => { note.hidden = true; dot.setAttribute("visibility", "hidden"); };
    frame.svg.addEventListener("pointerleave", hide);
    frame.svg.addEventListener("pointermove", (event) => {
      const box = frame.svg.getBoundingClientRect();
      const found = near(event.clientX - box.left, event.clientY - box.top);
      if (!found) return hide();
      const [x, y, text] = found;
      note.hidden = false;
      note.textContent = text;
      note.style.top = `${Math.max(0, y - note.offsetHeight - 10)}px`;
      note.style.left = `${Math.min(Math.max(0, x - note.offsetWidth / 2), frame.width - note.offsetWidth)}px`;
      for (const [name, value] of [["cx", x], ["cy", y], ["visibility", "visible"]]) dot.setAttribute(name, value);
    });
  };

  const extent = (values, given) => {
    if (given) return given;
    const known = values.filter((v) => v !== null);
    const [low, high] = [Math.min(0, ...known), Math.max(...known)];
    return [low, high > low ? high : low + 1];
  };

  const path = (line, at) => {
    let [d, pen] = ["", "M"];
    line.y.forEach((value, i) => {
      if (value === null) { pen = "M"; return; }
      const [x, y] = [at.x(line.x[i]).toFixed(1), at.y(value).toFixed(1)];
      d += pen === "L" && line.step ? `H${x}V${y}` : `${pen}${x} ${y}`;
      pen = "L";
    });
    return d;
  };

  const chart = (element, figure, wanted) => {
    const shown = figure.lines.filter((line) => !("only" in line) || wanted === "*" || wanted === line.only);
    const x = { ...figure.x, range: extent(shown.flatMap((l) => l.x), figure.x.range) };
    const y = { ...figure.y, range: extent([...shown.flatMap((l) => l.y), ...figure.levels.map((l) => l.at)], figure.y.range) };
    const frame = avtt.axes(element, x, y);
    const { at, edge, width } = frame;
    for (const level of figure.levels) {
      const place = at.y(level.at);
      frame.draw("line", { x1: edge.left, x2: width - edge.right, y1: place, y2: place, style: `stroke:var(--${level.colour})`, "stroke-dasharray": DASHES.dash, class: "level" });
      const beside = place < 20 ? place + 14 : place - 6; // below the line where above it is no room
      frame.draw("text", { x: width - edge.right - 4, y: beside, "text-anchor": "end", style: `fill:var(--${level.colour})`, class: "halo" }, level.text);
    }
    for (const line of shown) {
      const thin = "only" in line && wanted === "*";
      const pen = { style: `stroke:var(--${line.colour})`, "stroke-width": thin ? 1 : line.width || 2, "stroke-dasharray": DASHES[line.dash] || "none" };
      frame.draw("path", { d: path(line, at), class: "line", ...pen });
      if (line.x.length < 3) line.x.forEach((v, i) => line.y[i] !== null && frame.draw("circle", { cx: at.x(v), cy: at.y(line.y[i]), r: 3.5, style: `fill:var(--${line.colour})` }));
    }
    const [sayX, sayY] = [worded(x), worded(y)];
    avtt.hover(frame, element, (px, py) => {
      let best = null;
      for (const line of shown) line.x.forEach((v, i) => {
        if (line.y[i] === null) return;
        const [cx, cy] = [at.x(v), at.y(line.y[i])];
        const far = Math.abs(cx - px) * 3 + Math.abs(cy - py);
        if (!best || far < best[0]) best = [far, cx, cy, `${line.name}: ${sayY(line.y[i])}\n${sayX(v)} ${figure.x.title}`];
      });
      return best && best.slice(1);
    });
    const named = shown.filter((line) => !("only" in line) || wanted !== "*");
    if (named.length > 1) avtt.legend(element, named.map((l) => [l.name, `var(--${l.colour})`, l.dash]));
  };

  for (const element of document.querySelectorAll(".chart")) {
    const views = avtt.read(`${element.id}-data`);
    if (!views) continue;
    const chooser = document.querySelector(`[data-view="${element.id}"]`);
    const only = document.querySelector(`[data-only="${element.id}"]`);
    const redraw = () => chart(element, views[chooser ? chooser.value : Object.keys(views)[0]], only ? only.value : "*");
    for (const control of [chooser, only]) if (control) control.addEventListener("change", redraw);
    avtt.keep(element, redraw);
  }
})();
