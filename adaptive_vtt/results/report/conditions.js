// The map of relations by severity, or by concept: the same cells under another figure or concept.
"use strict";

(() => {
  const map = avtt.read("map-data");
  const table = document.getElementById("map");
  if (!map || !table) return;
  const figure = document.getElementById("map-figure");
  const concept = document.getElementById("map-concept");
  const COUNTS = ["true negatives", "false positives", "false negatives", "true positives", "unanswered"];
  const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}\u202f%`);

  const about = (row) => [
    ...COUNTS.map((c, i) => `${c}: ${row[2 + i]}`),
    ...map.figures.map((f, i) => `${f.name}: ${percent(row[7 + i])}`),
  ].join("\n");

  const redraw = () => {
    const f = figure ? Number(figure.value) : 0;
    const chosen = concept ? concept.value : "all";
    const base = (row) => map.figures[f].base.reduce((sum, k) => sum + row[2 + k], 0);
    const bad = (row) => (row[7 + f] === null ? 0 : f === 0 ? row[7 + f] : 1 - Math.max(0, row[7 + f]));
    const rows = map.cells[chosen] || [];
    const cells = new Map(rows.map((row) => [`${row[0]},${row[1]}`, row]));
    const solid = rows.filter((row) => base(row) >= map.few).map(bad);
    const worst = Math.max(0.1, ...(solid.length ? solid : rows.map(bad)));
    for (const cell of table.querySelectorAll(".cell")) {
      const row = cells.get(cell.dataset.place);
      const shade = row ? Math.min(1, bad(row) / worst) : 0;
      const few = Boolean(row) && base(row) < map.few;
      cell.style.setProperty("--shade", `${Math.round(100 * shade)}%`);
      cell.classList.toggle("few", few);
      cell.classList.toggle("none", !row);
      cell.classList.toggle("dark", shade > 0.55 && !few);
      cell.firstElementChild.textContent = row ? percent(row[7 + f]) : "–";
      cell.lastElementChild.textContent = row ? `n ${base(row).toLocaleString("en")}` : "not asked";
      cell.title = row ? about(row) : "";
      const [place, query] = [cell.dataset.place.split(",").map(Number), new URLSearchParams()];
      query.set("relation", place[0]);
      if (map.across === "severity") query.set("severity", map.severities[place[1]]);
      else query.set("concept", place[1]);
      if (chosen !== "all") query.set("concept", chosen);
      cell.href = `#failures?${query}`;
    }
  };

  for (const control of [figure, concept]) if (control) control.addEventListener("change", redraw);
  redraw();
})();
