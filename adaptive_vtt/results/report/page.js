// What every section may use: data, sorting, the navigation.
"use strict";

const avtt = {
  read(id) {
    const element = document.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  },
  async inflated(id) { // text that was packed with gzip
    if (!("DecompressionStream" in window)) throw new Error("this browser cannot unpack gzip");
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  },
  async unpacked(id) {
    return JSON.parse(await avtt.inflated(id));
  },
  seen(element, then) { // once it is about to come into view
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      then();
    }, { rootMargin: "100px" }).observe(element);
  },
};

// -- sortable tables -------------------------------------------------------------------
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  // by the number that a cell begins with, or the upper end of an interval; a dash is not known
  const number = /^[±<$€£]?\s*(?:[\d.,]+ to )?([−-]?[\d,]*\.?\d+(?:e-?\d+)?)(?![\w-])/;
  const value = (row, column) => {
    const cell = row.cells[column];
    if ("value" in cell.dataset) return parseFloat(cell.dataset.value);
    const text = cell.textContent.trim();
    const match = column ? number.exec(text) : null;
    return text === "–" ? NaN : match ? parseFloat(match[1].replaceAll(",", "").replace("−", "-")) : text;
  };
  const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b);
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

// -- names ------------------------------------------------------------------------------
// "brightness_down" breaks after its underscore, and "mine.py:Mine" after its colon, before they break anywhere.
for (const head of document.querySelectorAll("th[scope=row]")) {
  const walk = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) if (/[_/:]/.test(walk.currentNode.data)) texts.push(walk.currentNode);
  for (const text of texts) {
    const parts = text.data.split(/(?<=[_/:])/).flatMap((part) => [part, document.createElement("wbr")]);
    text.replaceWith(...parts.slice(0, -1));
  }
}

// -- boxes that scroll -------------------------------------------------------------------
// They end after a whole row, below which a shadow shows that there is more.
const whole = (box) => {
  box.style.maxHeight = "";
  const [top, most] = [box.getBoundingClientRect().top - box.scrollTop, box.clientHeight];
  const ends = [...box.querySelectorAll("tr")].map((row) => row.getBoundingClientRect().bottom - top).filter((end) => end <= most);
  const cut = box.scrollHeight > most + 1 && ends.length > 0;
  box.classList.toggle("cut", cut);
  if (cut) box.style.maxHeight = `${Math.max(...ends) + box.offsetHeight - most}px`;
};
const boxes = new ResizeObserver((entries) => { for (const { target } of entries) whole(target); });
for (const box of document.querySelectorAll(".tall")) boxes.observe(box);

// -- navigation ------------------------------------------------------------------------
const links = new Map([...document.querySelectorAll(".bar a")].map((a) => [a.hash.slice(1), a]));
let here = null;
const mark = () => {
  if (!links.size) return;
  const passed = [...links.keys()].filter((id) => document.getElementById(id).getBoundingClientRect().top < 140);
  const end = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 4 && window.scrollY > 0;
  const now = end ? [...links.keys()].pop() : passed.pop() || links.keys().next().value;
  if (now === here) return;
  here = now;
  for (const [id, link] of links) id === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  const bar = links.get(here).parentElement;
  bar.scrollTo({ left: links.get(here).offsetLeft - bar.clientWidth / 2 + links.get(here).offsetWidth / 2 });
};
window.addEventListener("scroll", mark, { passive: true });
mark();

// A link into what is folded away opens it.
const unfold = () => {
  const target = /^#[\w-]+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded && !folded.open) { folded.open = true; target.scrollIntoView(); }
};
window.addEventListener("hashchange", unfold);
unfold();
window.addEventListener("beforeprint", () => { for (const folded of document.querySelectorAll("details")) folded.open = true; });
