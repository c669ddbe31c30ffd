// A run's page: what the audit is doing, every second, and its report in a frame. A newer report is
// loaded behind the one that is read, and takes its place once it stands: at the same place of the
// page, with the same parts open and the same choices made.
"use strict";

const EVERY = 1000;
const frames = document.getElementById("frames");
const hold = document.getElementById("hold");
const title = document.title;
let address = null;
let loading = false;

const documentOf = (frame) => frame && frame.contentDocument;

// -- what a reader did to the page ---------------------------------------------------------
// Elements are matched by id, or by their place among their kind where they have none.
const parts = (page, kind) => [...page.querySelectorAll(kind)].map((element, place) => [element.id || `${kind} ${place}`, element]);

function anchors(page) {
  return [...page.querySelectorAll("main section[id]")];
}

function reading(page) {
  const half = page.defaultView.innerHeight / 2; // a heading above it is what is read
  const here = anchors(page).filter((section) => section.getBoundingClientRect().top < half).pop();
  return {
    anchor: here ? here.id : null,
    offset: here ? here.getBoundingClientRect().top : -page.defaultView.scrollY,
    open: new Map(parts(page, "details").map(([name, element]) => [name, element.open])),
    chosen: new Map(parts(page, "select").map(([name, element]) => [name, element.value])),
  };
}

function restore(page, was) {
  for (const [name, element] of parts(page, "details")) if (was.open.has(name)) element.open = was.open.get(name);
  for (const [name, element] of parts(page, "select")) {
    const value = was.chosen.get(name);
    if (value === undefined || value === element.value) continue;
    if (![...element.options].some((option) => option.value === value)) continue;
    element.value = value;
    element.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const section = was.anchor && page.getElementById(was.anchor);
  const top = section ? page.defaultView.scrollY + section.getBoundingClientRect().top - was.offset : -was.offset;
  page.defaultView.scrollTo({ top, behavior: "instant" });
}

// Somebody who looks at a picture or types is not disturbed.
function busy(page) {
  const element = page.activeElement;
  return page.querySelector("dialog[open]") !== null || (element && ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName));
}

// -- the frames ----------------------------------------------------------------------------
function load(wanted) {
  loading = true;
  const before = frames.querySelector("iframe");
  const next = document.createElement("iframe");
  next.title = "Report";
  next.className = before ? "behind" : "";
  next.src = before ? wanted : wanted + location.hash;
  next.addEventListener("load", () => requestAnimationFrame(() => {
    loading = false;
    const page = documentOf(next);
    if (!page || !page.querySelector("main")) { next.remove(); return; }
    if (before) {
      restore(page, reading(documentOf(before)));
      next.className = "";
      before.remove();
    }
    address = wanted;
    next.contentWindow.addEventListener("hashchange", () => history.replaceState(null, "", next.contentWindow.location.hash));
  }), { once: true });
  frames.append(next);
}

function offer(wanted) {
  if (!wanted || wanted === address || loading) return;
  const before = frames.querySelector("iframe");
  if (before && (hold.getAttribute("aria-pressed") === "true" || busy(documentOf(before)))) return;
  load(wanted);
}

// -- following -----------------------------------------------------------------------------
function show(state) {
  document.getElementById("words").textContent = state.words;
  document.getElementById("words").className = `state ${state.state}`;
  document.getElementById("figures").textContent = state.figures;
  document.getElementById("note").textContent = state.note;
  document.title = `${state.state}: ${title}`;
  hold.hidden = state.state !== "running";
}

async function follow() {
  if (!document.hidden) {
    try {
      const answer = await fetch("state");
      const state = answer.ok ? await answer.json() : { state: "unreadable", words: "There is no such run here any more.", figures: "", note: "", report: null };
      show(state);
      offer(state.report);
    } catch (error) {
      show({ state: "unreadable", words: "Nobody serves this page any more: 'avtt view' was ended. Below stands the last report.", figures: "", note: "" });
    }
  }
  setTimeout(follow, EVERY);
}

hold.addEventListener("click", () => {
  const held = hold.getAttribute("aria-pressed") !== "true";
  hold.setAttribute("aria-pressed", String(held));
  hold.textContent = held ? "Held" : "Hold";
});
follow();
