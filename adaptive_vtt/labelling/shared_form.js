// What every form does: answers stay in localStorage and leave as a CSV file.
// A form's own script stands after this one; it calls recall() and declares rowOf(), the cells of an answer.
"use strict";

const form = JSON.parse(document.getElementById("form-data").textContent);
const at = (id) => document.getElementById(id);
const answers = new Map();
let place = -1;

// -- what the browser keeps --------------------------------------------------------------
// told: answers that were given before the page was written; keyOf: what an answer is about, as a text
function recall(told, keyOf) {
  for (const given of told) answers.set(keyOf(given), given);
  try {
    for (const given of JSON.parse(localStorage.getItem(form.store) || "[]")) {
      const other = answers.get(keyOf(given));
      if (!other || Date.parse(given.time) > Date.parse(other.time)) answers.set(keyOf(given), given);
    }
  } catch { /* told by keep() */ }
  keep();
}

function keep() {
  try {
    localStorage.setItem(form.store, JSON.stringify([...answers.values()]));
  } catch {
    at("unkept").hidden = false;
  }
}

function csv() {
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  // a spreadsheet must not take words for a formula; tables.py reads them back
  const inert = (value) => (/^'*[=+\-@\t\r]/.test(value) && !/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value) ? `'${value}` : value);
  const rows = [...answers.values()].map(rowOf);
  return [form.columns, ...rows].map((row) => row.map(inert).map(quoted).join(",") + "\n").join("");
}

at("download").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = `${form.person}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});

// -- what is shown -----------------------------------------------------------------------
function make(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

// a button: the key that presses it, whether it was chosen, what stands on it, and what it does
function choiceButton(key, pressed, parts, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "choice";
  element.setAttribute("aria-pressed", String(pressed));
  element.append(make("kbd", key), ...parts);
  element.addEventListener("click", act);
  return element;
}

// one of the list, or its end; done: how many of them are labelled or answered, as verb says
function showPlace(list, done, verb) {
  const total = list.length;
  at("count").textContent = `${done} of ${total} ${verb}`;
  at("bar").style.width = `${total ? (100 * done) / total : 100}%`;
  at("card").hidden = place >= total;
  at("end").hidden = place < total;
  at("end-title").textContent = done === total ? `Everything is ${verb}` : `${total - done} left un${verb}`;
}

// -- what one can do ---------------------------------------------------------------------
function onKey(act) {
  document.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat) act(event);
  });
}
