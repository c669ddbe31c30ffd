// One card at a time, with all its questions: answers stay in localStorage and leave as a CSV file.
"use strict";

const form = JSON.parse(document.getElementById("form-data").textContent);
const at = (id) => document.getElementById(id);
const answers = new Map();
let place = -1;

// -- what the browser keeps --------------------------------------------------------------
const keyOf = (one) => JSON.stringify([one.card, one.question]);
const rowOf = (a) => [a.card, a.question, form.person, a.answer, a.time];

// given before the page was written
function recall(earlier) {
  for (const given of earlier) answers.set(keyOf(given), given);
  try {
    for (const given of JSON.parse(localStorage.getItem(form.store) || "[]")) {
      const other = answers.get(keyOf(given));
      if (!other || Date.parse(given.time) > Date.parse(other.time)) answers.set(keyOf(given), given);
    }
  } catch { /* keep() shows it */ }
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

for (const name of ["download", "save"]) at(name).addEventListener("click", () => {
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

// -- where one stands --------------------------------------------------------------------
const given = (card, asked) => answers.get(keyOf({ card: card.id, question: asked.id }));
const isDone = (card) => card.asked.every((asked) => given(card, asked));
const open = (card) => card.asked.find((asked) => !given(card, asked));

function go(to) {
  place = Math.max(0, to);
  show();
  at("card").hidden || window.scrollTo({ top: 0 });
}

function forward() {
  let to = place + 1;
  while (to < form.cards.length && isDone(form.cards[to])) to += 1;
  go(to);
}

// a full stop separates the words of a button from its answer
const inWords = (text) => (["yes", "no", form.unsure].includes(text.toLowerCase()) ? `${text}.` : text);

function put(card, asked, value) {
  const one = { card: card.id, question: asked.id, answer: value, time: new Date().toISOString() };
  answers.set(keyOf(one), one);
  keep();
}

function answer(asked, value) {
  const card = form.cards[place];
  const wasDone = isDone(card);
  put(card, asked, value);
  if (isDone(card) && !wasDone && card.asked.every((one) => one.choices.length)) return forward(); // nothing is left to write
  show();
  const next = card.asked.indexOf(open(card));
  if (next > 0) at("asked").children[next].scrollIntoView({ block: "nearest" });
}

// -- what is shown -----------------------------------------------------------------------
function outlines({ boxes, size: [height, width] }) {
  const drawn = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const svg = drawn("svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const [left, top, right, bottom] of boxes) for (const kind of ["edge", ""]) {
    const rect = drawn("rect");
    const sides = { x: left, y: top, width: right - left, height: bottom - top, class: kind };
    for (const [name, value] of Object.entries(sides)) rect.setAttribute(name, value);
    svg.append(rect);
  }
  return svg;
}

// words with the card's object marked
function caption(text, word) {
  const element = make("p", text);
  element.className = "words";
  const start = word ? text.toLowerCase().indexOf(word.toLowerCase()) : -1;
  const end = start + word.length;
  if (start >= 0) element.replaceChildren(text.slice(0, start), make("mark", text.slice(start, end)), text.slice(end));
  return element;
}

function picture(card, index) {
  const figure = document.createElement("figure");
  const [name, title] = [card.pictures[index], card.titles[index]];
  if (name) {
    const image = document.createElement("img");
    image.src = form.pictures[name];
    image.alt = title;
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 64));
    image.addEventListener("click", () => at("pictures").classList.toggle("whole"));
    const view = document.createElement("div");
    if (card.captions.length || card.boxes.length) view.className = "view"; // as large as the picture, for its outlines
    view.append(image);
    if (!index && card.boxes.length) view.append(outlines(card));
    figure.append(view);
  } else {
    figure.append(make("p", "no picture was kept"));
    figure.firstChild.className = "missing";
  }
  if (card.captions.length) figure.append(caption(card.captions[index], card.mark));
  figure.append(make("figcaption", title));
  return figure;
}

function button(asked, value, name, key) {
  const reply = given(form.cards[place], asked);
  const element = document.createElement("button");
  element.type = "button";
  element.className = "choice";
  element.setAttribute("aria-pressed", String(Boolean(reply) && reply.answer === value));
  element.append(make("kbd", key), make("span", name));
  if (value === asked.suggested) {
    const note = make("span", "pre-label");
    note.className = "verdict right";
    element.append(note);
  }
  element.addEventListener("click", () => answer(asked, value));
  element.classList.toggle("unsure", value === form.unsure);
  element.dataset.answer = value;
  return element;
}

// Keys: Y and N, and letters and digits for themselves, where every answer has a key of its own; else numbers, 0 for no error
function choicesOf(asked) {
  const own = asked.choices.map(([value]) => (form.signs[value] || value).toUpperCase());
  const distinct = new Set(own.filter((key) => /^[A-TV-Z0-9]$/.test(key))); // U: not sure
  const first = asked.choices.some(([value]) => value === form.none) ? 0 : 1;
  const keyAt = (index) => (distinct.size === own.length ? own[index] : index + first < 10 ? String(index + first) : "");
  const named = asked.choices.map(([value, name], index) => [value, name, keyAt(index)]);
  return asked.unsure ? [...named, [form.unsure, "I am not sure", "U"]] : named;
}

function question(asked) {
  const element = document.createElement("fieldset");
  const choices = document.createElement("div");
  const card = form.cards[place];
  const long = asked.choices.some(([, name]) => name.length > 24);
  choices.className = asked.choices.length === 2 ? "choices short" : long ? "choices long" : "choices";
  element.append(make("legend", asked.text));
  if (!asked.choices.length) {
    const words = document.createElement("textarea");
    const reply = given(card, asked);
    words.value = reply && reply.answer !== form.unsure ? reply.answer : "";
    words.maxLength = form.most_words;
    words.setAttribute("aria-label", asked.text);
    // nothing is drawn anew while somebody writes: a click that ends it would meet no button
    words.addEventListener("input", () => {
      if (!words.value.trim()) return;
      put(card, asked, inWords(words.value.trim()));
      for (const button of choices.children) button.setAttribute("aria-pressed", "false");
      showDone();
    });
    element.append(words);
  }
  choices.append(...choicesOf(asked).map(([value, name, key]) => button(asked, value, name, key)));
  element.append(choices);
  return element;
}

function showDone() {
  const card = form.cards[place];
  const done = form.cards.filter(isDone).length;
  const total = form.cards.length;
  at("count").textContent = `${done} of ${total} answered`;
  at("bar").style.width = `${total ? (100 * done) / total : 100}%`;
  at("card").hidden = place >= total;
  at("end").hidden = place < total;
  at("end-title").textContent = done === total ? "Everything is answered" : `${total - done} left unanswered`;
  at("rest").hidden = done === total;
  if (!card) return;
  [...at("asked").children].forEach((element, k) => { // idle: its keys do nothing now
    element.classList.toggle("idle", card.asked[k] !== open(card) && card.asked.length > 1);
  });
}

function show() {
  const card = form.cards[place];
  if (!card) return showDone();
  at("pictures").classList.remove("whole");
  at("pictures").replaceChildren(...card.titles.map((_, index) => picture(card, index)));
  at("words").textContent = card.words;
  at("words").hidden = !card.words;
  at("facts").replaceChildren(...card.facts.map(([name, text]) => make("span", `${name}: ${text}. `)));
  at("facts").hidden = !card.facts.length;
  at("confirm").hidden = !card.asked[0].suggested;
  at("card").classList.toggle("many", card.asked.length > 2);
  at("asked").replaceChildren(...card.asked.map(question));
  at("back").disabled = place === 0;
  showDone();
}

// -- what one can do ---------------------------------------------------------------------
const back = () => go(place - 1);
const next = () => go(place + 1);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("textarea")) return;
  const key = event.key.toUpperCase();
  const card = form.cards[place];
  const asked = card && (open(card) || (card.asked.length === 1 ? card.asked[0] : undefined));
  const choice = asked && choicesOf(asked).find(([, , sign]) => sign === key);
  if (choice) answer(asked, choice[0]);
  else if (key === "ENTER" && asked && asked.suggested && !event.target.closest("button")) answer(asked, asked.suggested);
  else if (key === "ARROWLEFT" && place > 0) back();
  else if (key === "ARROWRIGHT" && card) next();
  else return;
  event.preventDefault();
});
at("back").addEventListener("click", back);
at("next").addEventListener("click", next);
at("confirm").addEventListener("click", () => answer(form.cards[place].asked[0], form.cards[place].asked[0].suggested));
at("rest").addEventListener("click", () => { place = -1; forward(); });
at("again").addEventListener("click", () => go(0));
recall(form.answers.map(([card, question, answer, time]) => ({ card, question, answer, time })));
forward();
