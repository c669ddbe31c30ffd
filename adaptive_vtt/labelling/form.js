// One object at a time; answers stay in localStorage and leave as a CSV file.
"use strict";

const form = JSON.parse(document.getElementById("form-data").textContent);
const at = (id) => document.getElementById(id);
const keyOf = (question, object) => JSON.stringify([question, object]);
const answers = new Map(form.labels.map(([question, object, type, time]) => [keyOf(question, object), { question, object, type, time }]));
let place = -1;

// -- what the browser keeps --------------------------------------------------------------
try {
  const kept = JSON.parse(localStorage.getItem(form.store) || "[]");
  for (const label of kept) {
    const key = keyOf(label.question, label.object);
    const other = answers.get(key);
    if (!other || Date.parse(label.time) > Date.parse(other.time)) answers.set(key, label);
  }
} catch { /* told by keep() */ }

function keep() {
  try {
    localStorage.setItem(form.store, JSON.stringify([...answers.values()]));
  } catch {
    at("unkept").hidden = false;
  }
}

function csv() {
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  // a spreadsheet must not take an object's name for a formula; tables.py reads the name back
  const inert = (value) => (/^'*[=+\-@\t\r]/.test(value) && !/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value) ? `'${value}` : value);
  const rows = [...answers.values()].map((l) => [l.question, l.object, form.inspector, l.type === form.none ? "no" : "yes", l.type, l.time]);
  return [form.columns, ...rows].map((row) => row.map(inert).map(quoted).join(",") + "\n").join("");
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = `${form.inspector}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// -- where one stands --------------------------------------------------------------------
const labelOf = (item) => answers.get(keyOf(item.question, item.object));

function forward() {
  do place += 1; while (place < form.items.length && labelOf(form.items[place]));
  show();
}

function answer(type) {
  const { question, object } = form.items[place];
  answers.set(keyOf(question, object), { question, object, type, time: new Date().toISOString() });
  keep();
  forward();
}

function back() {
  place = Math.max(0, place - 1);
  show();
}

// -- what is shown -----------------------------------------------------------------------
function marked(element, text, word) {
  const found = text.toLowerCase().indexOf(word.toLowerCase());
  element.replaceChildren(text);
  if (found < 0) return;
  const mark = document.createElement("mark");
  mark.textContent = text.slice(found, found + word.length);
  element.replaceChildren(text.slice(0, found), mark, text.slice(found + word.length));
}

function outlines(boxes, [height, width]) {
  const make = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const svg = make("svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  for (const [left, top, right, bottom] of boxes) for (const kind of ["edge", ""]) {
    const rect = make("rect");
    const sides = { x: left, y: top, width: right - left, height: bottom - top, class: kind };
    for (const [name, value] of Object.entries(sides)) rect.setAttribute(name, value);
    svg.append(rect);
  }
  return svg;
}

function picture(element, name, text, boxes, size) {
  const shown = form.pictures[name];
  const holder = document.createElement(shown ? "div" : "p");
  holder.className = shown ? "view" : "missing";
  if (shown) {
    const image = document.createElement("img");
    image.src = shown;
    image.alt = text;
    holder.append(image);
    if (boxes.length) holder.append(outlines(boxes, size));
  } else {
    holder.textContent = "no picture was kept";
  }
  element.replaceChildren(holder);
}

function button([type, meaning], index, item) {
  const given = labelOf(item);
  const element = document.createElement("button");
  const [key, name, what] = ["kbd", "b", "span"].map((tag) => document.createElement(tag));
  element.type = "button";
  element.className = "choice";
  element.setAttribute("aria-pressed", String(Boolean(given) && given.type === type));
  key.textContent = String(index);
  name.textContent = type === form.none ? "No error" : type;
  what.textContent = meaning;
  element.append(key, name, what);
  if (type === item.prelabel) {
    const note = document.createElement("span");
    note.className = "verdict right";
    note.textContent = "pre-label";
    element.append(note);
  }
  element.addEventListener("click", () => answer(type));
  return element;
}

function show() {
  const total = form.items.length;
  const done = form.items.filter(labelOf).length;
  at("count").textContent = `${done} of ${total} labelled`;
  at("bar").style.width = `${total ? (100 * done) / total : 100}%`;
  const item = form.items[place];
  at("card").hidden = !item;
  at("end").hidden = Boolean(item);
  if (!item) {
    at("end-title").textContent = done === total ? "Everything is labelled" : `${total - done} left unlabelled`;
    return;
  }
  picture(at("source"), item.pictures[0], `source image ${item.sample}`, item.boxes, item.size);
  picture(at("follow-up"), item.pictures[1], `follow-up, ${item.change}`, []);
  marked(at("source-words"), item.source, item.object);
  marked(at("follow-up-words"), item.caption, item.object);
  at("sample").textContent = item.sample;
  at("change").textContent = item.change;
  at("object").textContent = item.object;
  at("verdict").textContent = item.verdict;
  at("verdict").className = item.reported ? "verdict wrong" : "verdict";
  at("visible").textContent = `in the follow-up: visible ${item.visible}`;
  at("choices").replaceChildren(...form.choices.map((choice, index) => button(choice, index, item)));
  at("confirm").hidden = item.prelabel === null;
  at("back").disabled = place === 0;
}

// -- what one can do ---------------------------------------------------------------------
const ways = {
  b: back,
  s: forward,
  enter: () => form.items[place].prelabel !== null && answer(form.items[place].prelabel),
};
form.choices.forEach(([type], index) => { ways[index] = () => answer(type); });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const key = event.key.toLowerCase();
  if (key === "b" && place === form.items.length) back();
  if (place >= form.items.length || !(key in ways)) return;
  if (key === "enter" && event.target.closest("button")) return; // it presses that button
  event.preventDefault();
  ways[key]();
});
at("back").addEventListener("click", back);
at("skip").addEventListener("click", forward);
at("confirm").addEventListener("click", ways.enter);
at("download").addEventListener("click", download);
at("again").addEventListener("click", () => { place = 0; show(); });
keep();
forward();
