// What was believed: surface and curves at any moment of the audit, the questions asked before it, and
// the map of images. Figures are made in Python; their traces say in ``meta`` from which table their
// values come (results/beliefs/figures.py), so that they can be turned to another moment here.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const option = (id) => (byId(id) ? byId(id).value : "");
  const taken = (values, at) => (Array.isArray(at) ? at.map((one) => taken(values, one)) : at === null ? null : values[at]);
  const make = (tag, text = "", className = "") => Object.assign(document.createElement(tag), { textContent: text, className });
  const saved = (text, name) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };

  // -- surface and curves --------------------------------------------------------------------
  const slider = byId("moments-at");
  const PACE = 450;  // milliseconds a moment
  let loading = null;
  const load = () => (loading ||= avtt.unpacked("believed-data"));

  // A trace as it was at moment k of its table.
  const turned = (data, trace, k) => {
    const { of, at, bind } = trace.meta;
    const copy = { ...trace };
    for (const [path, column] of Object.entries(bind)) {
      const values = taken(data.tables[of].columns[column][k], at);
      const [outer, inner] = path.split(".");
      copy[outer] = inner ? { ...copy[outer], [inner]: values } : values;
    }
    return copy;
  };

  // Which moment of its table that is: large tables have fewer than the slider.
  const moment = (data, trace) => {
    const draws = data.moments[Number(slider.value)];
    const k = data.tables[trace.meta.of].draws.findLastIndex((d) => d <= draws);
    return Math.max(k, 0);
  };

  const surface = async () => {
    const data = await load();
    const { data: [heat, dots], layout } = data.surfaces[option("surface-of")];
    const look = option("surface-look");
    const coloured = { ...heat, ...heat.meta.looks[look], name: heat.meta.shown[look], meta: { ...heat.meta, bind: { ...heat.meta.bind, z: look } } };
    return { layout: { ...layout, height: 150 + 26 * heat.y.length }, data: [coloured, dots].map((t) => turned(data, t, moment(data, t))) };
  };

  const curves = async () => {
    const data = await load();
    const { data: lines, layout } = data.curves[option("curves-of")];
    return { layout, data: lines.map((t) => turned(data, t, moment(data, t))) };
  };

  // The failures of a group of questions.
  const go = (data, of, group) => {
    const [concept, relation, severity] = data.tables[of].groups[group];
    const query = new URLSearchParams();
    if (relation !== null) query.set("relation", data.relations.indexOf(relation));
    if (severity !== null) query.set("severity", severity);
    if (concept !== null && data.of_concepts) query.set("concept", data.concepts.indexOf(concept));
    location.hash = `#failures?${query}`;
  };
  const clicked = async ({ data: trace, pointNumber }) => {
    const at = [pointNumber].flat().reduce((values, k) => (values ?? [])[k], trace.meta && trace.meta.at);
    if (typeof at === "number") go(await load(), trace.meta.of, at);
  };

  const amount = (count) => count.toLocaleString("en");
  const short = (value, share) => {
    if (typeof value !== "number") return value ?? "–";
    return share ? `${Math.round(100 * value)}\u202f%` : String(Number(value.toPrecision(3)));
  };

  const row = ({ heads, shares }, [number, asked, reasons, chance, verdict]) => {
    const line = make("tr");
    const question = make("td", "", "text");
    question.append(asked[0], make("b", asked[1]), asked[2]);
    const cells = heads.map((_, k) => make("td", short(reasons[k], shares[k]), typeof reasons[k] === "string" ? "text" : ""));
    const came = make("td", "", "text");
    came.append(make("span", verdict, `verdict ${verdict}`));
    line.append(make("td", String(number)), question, ...cells, make("td", chance), came);
    return line;
  };

  const list = async () => {
    const data = await load();
    const [k, { draws, moments: times }] = [Number(slider.value), data];
    const [from, to] = [k ? times[k - 1] : 0, times[k]];
    byId("moments-title").textContent = k ? `Asked between draws ${amount(from)} and ${amount(to)}` : `Asked first: draws 1 to ${amount(to)}`;
    const head = make("tr");
    const titles = ["draw", "question", ...draws.heads, "probability of the draw", "verdict"];
    head.append(...titles.map((title, j) => Object.assign(make("th", title, j === 1 || j === titles.length - 1 || title === "counts most for" ? "text" : ""), { scope: "col" })));
    const table = byId("moments-draws");
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...draws.gaps[k].map((line) => row(draws, line)));
    table.parentElement.scrollTop = 0;
    const [shown, all] = [table.tBodies[0].rows.length, draws.counts[k]];
    const parts = draws.shares.some(Boolean) ? " Percentages: the parts that the probability of the draw is the sum of." : "";
    byId("moments-count").textContent = `${shown < all ? `The first ${shown} of ${amount(all)} draws` : all === 1 ? "One draw" : `${amount(all)} draws`}, and why each was made.${parts}`;
  };

  if (slider) {
    const [drawSurface, drawCurves] = [avtt.plot(byId("surface-chart"), surface, clicked), avtt.plot(byId("curves-chart"), curves, clicked)];
    const play = byId("moments-play");
    const redraw = async () => {
      const times = (await load()).moments;
      const text = `after ${amount(times[Number(slider.value)])} draws`;
      byId("moments-text").textContent = text;
      slider.setAttribute("aria-valuetext", text);
      const now = slider.value;
      await Promise.all([drawSurface(), drawCurves(), list()]);
      byId("surface-chart").dataset.moment = now;
    };
    let playing = false;
    const stop = () => {
      playing = false;
      play.setAttribute("aria-pressed", "false");
      play.textContent = "▶ Play";
    };
    const pause = () => new Promise((done) => setTimeout(done, PACE));
    play.addEventListener("click", async () => {
      if (playing) return stop();
      playing = true;
      play.setAttribute("aria-pressed", "true");
      play.textContent = "⏸ Pause";
      if (slider.value === slider.max) slider.value = 0;
      else slider.stepUp();
      for (await redraw(); playing && slider.value !== slider.max; await redraw()) {
        await pause();
        if (playing) slider.stepUp();
      }
      return stop();
    });
    slider.addEventListener("input", () => { stop(); redraw(); });
    for (const id of ["surface-look", "surface-of"]) if (byId(id)) byId(id).addEventListener("change", drawSurface);
    byId("curves-of").addEventListener("change", drawCurves);
    avtt.seen(byId("moments"), () => list().then(() => { slider.disabled = play.disabled = false; }).catch(() => {}));
  }

  // -- images --------------------------------------------------------------------------------
  const chart = byId("images-chart");
  if (!chart) return;
  let known = null;
  let figure = null;
  const thumbnail = byId("images-thumbnail");
  const lasso = byId("images-lasso");
  const chosen = new Set();
  const draw = avtt.plot(chart, async () => {
    figure ||= await avtt.unpacked("images-data");
    const { data: [dots], layout } = figure;
    const column = dots.meta.looks[option("images-look")];
    const marker = { ...dots.marker, color: dots.customdata.map((about) => about[column]) };
    if (column < 2) marker.colorbar = { ...marker.colorbar, tickformat: ".0%" };
    const selectedpoints = chosen.size ? figure.samples.flatMap((name, k) => (chosen.has(name) ? [k] : [])) : null;
    const dragmode = lasso.getAttribute("aria-pressed") === "true" ? "lasso" : "zoom";
    return { data: [{ ...dots, marker, selectedpoints, unselected: { marker: { opacity: 0.3 } } }], layout: { ...layout, dragmode, height: 460 } };
  }, ({ pointNumber }) => { location.hash = `#failures?${new URLSearchParams({ sample: figure.samples[pointNumber] })}`; });

  // Pictures that the page has: those of failures, the source where there is one.
  const picture = (sample) => {
    if (!known) {
      const pictures = avtt.read("pictures") || [];
      known = new Map((avtt.read("failures-data") || []).filter((item) => item.views[0].picture !== null).map((item) => [item.sample, pictures[item.views[0].picture]]));
    }
    return known.get(sample);
  };

  const show = () => {
    byId("images-list").hidden = !chosen.size;
    byId("images-count").textContent = `${chosen.size} chosen`;
    byId("images-ids").value = [...chosen].join("\n");
  };

  const hover = ({ points: [point] }) => {
    const shown = picture(figure.samples[point.pointNumber]);
    thumbnail.hidden = !shown;
    if (!shown) return;
    const { xaxis, yaxis } = point;
    const [left, top] = [xaxis._offset + xaxis.d2p(point.x), yaxis._offset + yaxis.d2p(point.y)];
    thumbnail.src = shown[0];
    Object.assign(thumbnail.style, { left: `${Math.min(Math.max(left - 44, 0), chart.clientWidth - 88)}px`, top: `${top > 120 ? top - 108 : top + 20}px` });
  };

  avtt.drawn(chart, () => {
    lasso.disabled = false;
    chart.on("plotly_hover", hover);
    chart.on("plotly_unhover", () => { thumbnail.hidden = true; });
    chart.on("plotly_selected", (event) => {
      if (!event) return;
      chosen.clear();
      for (const { pointNumber } of event.points) chosen.add(figure.samples[pointNumber]);
      show();
    });
    chart.addEventListener("keydown", (event) => {
      const at = chart.dataset.at;
      if (event.key !== " " || at === undefined) return;
      event.preventDefault();
      const sample = figure.samples[Number(at)];
      if (!chosen.delete(sample)) chosen.add(sample);
      show();
      draw();
    });
  });
  byId("images-look").addEventListener("change", draw);
  lasso.addEventListener("click", () => {
    const on = lasso.getAttribute("aria-pressed") !== "true";
    lasso.setAttribute("aria-pressed", String(on));
    lasso.textContent = on ? "Drag: lasso" : "Drag: zoom";
    draw();
  });
  byId("images-copy").addEventListener("click", () => {
    byId("images-ids").select();
    if (navigator.clipboard) navigator.clipboard.writeText(byId("images-ids").value).catch(() => document.execCommand("copy"));
    else document.execCommand("copy");
  });
  byId("images-save").addEventListener("click", () => saved(`${byId("images-ids").value}\n`, "images.txt"));
  byId("images-clear").addEventListener("click", () => { chosen.clear(); show(); draw(); });
})();
