// One card at a time, with all its questions; answers stay in localStorage and leave as a CSV file.
"use strict";

const form = JSON.parse(document.getElementById("form-data").textContent);
const at = (id) => document.getElementById(id);
const keyOf = (card, question) => JSON.stringify([card, question]);
const answers = new Map(form.answers.map(([card, question, answer, time]) => [keyOf(card, question), { card, question, answer, time }]));
let place = -1;

// -- what the browser keeps --------------------------------------------------------------
try {
  for (const given of JSON.parse(localStorage.getItem(form.store) || "[]")) {
    const key = keyOf(given.card, given.question);
    const other = answers.get(key);
    if (!other || Date.parse(given.time) > Date.parse(other.time)) answers.set(key, given);
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
  // a spreadsheet must not take words for a formula; tables.py reads them back
  const inert = (value) => (/^'*[=+\-@\t\r]/.test(value) && !/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value) ? `'${value}` : value);
  const rows = [...answers.values()].map((a) => [a.card, a.question, form.reader, a.answer, a.time]);
  return [form.columns, ...rows].map((row) => row.map(inert).map(quoted).join(",") + "\n").join("");
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = `${form.reader}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// -- where one stands --------------------------------------------------------------------
const given = (card, asked) => answers.get(keyOf(card.number, asked.id));
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

function answer(asked, value) {
  const card = form.cards[place];
  const wasDone = isDone(card);
  answers.set(keyOf(card.number, asked.id), { card: card.number, question: asked.id, answer: value, time: new Date().toISOString() });
  keep();
  if (isDone(card) && !wasDone && card.asked.every((one) => one.choices.length)) return forward(); // nothing is left to write
  show();
  const next = card.asked.indexOf(open(card));
  if (next > 0) at("asked").children[next].scrollIntoView({ block: "nearest" });
}

// -- what is shown -----------------------------------------------------------------------
function picture(name, title) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const image = document.createElement("img");
  image.src = form.pictures[name];
  image.alt = title;
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 64));
  image.addEventListener("click", () => at("pictures").classList.toggle("whole"));
  caption.textContent = title;
  figure.append(image, caption);
  return figure;
}

function button(asked, value, name, key) {
  const said = given(form.cards[place], asked);
  const element = document.createElement("button");
  const sign = document.createElement("kbd");
  const words = document.createElement("span");
  element.type = "button";
  element.className = value === form.unsure ? "choice unsure" : "choice";
  element.dataset.answer = value;
  element.setAttribute("aria-pressed", String(Boolean(said) && said.answer === value));
  sign.textContent = key;
  words.textContent = name;
  element.append(sign, words);
  element.addEventListener("click", () => answer(asked, value));
  return element;
}

// Keys: a letter or digit stands for itself, y and n for yes and no, else the number; u: cannot tell
const keyFor = ([value], index) => (/^[A-Za-z0-9]$/.test(value) ? value.toUpperCase() : { yes: "Y", no: "N" }[value] || (index < 9 ? String(index + 1) : ""));

function choicesOf(asked) {
  const named = asked.choices.map((choice, index) => [choice[0], choice[1], keyFor(choice, index)]);
  return [...named, [form.unsure, "I cannot tell", "U"]];
}

function question(asked) {
  const element = document.createElement("fieldset");
  const legend = document.createElement("legend");
  const choices = document.createElement("div");
  const card = form.cards[place];
  element.className = asked === open(card) || card.asked.length === 1 ? "" : "idle"; // whose keys do nothing now
  legend.textContent = asked.text;
  choices.className = asked.choices.length === 2 ? "choices short" : "choices";
  element.append(legend);
  if (!asked.choices.length) {
    const words = document.createElement("textarea");
    const said = given(card, asked);
    words.value = said && said.answer !== form.unsure ? said.answer : "";
    words.maxLength = 2000;
    words.setAttribute("aria-label", asked.text);
    words.addEventListener("change", () => words.value.trim() && answer(asked, words.value.trim()));
    element.append(words);
  }
  choices.append(...choicesOf(asked).map(([value, name, key]) => button(asked, value, name, key)));
  element.append(choices);
  return element;
}

function show() {
  const total = form.cards.length;
  const done = form.cards.filter(isDone).length;
  at("count").textContent = `${done} of ${total} answered`;
  at("bar").style.width = `${total ? (100 * done) / total : 100}%`;
  const card = form.cards[place];
  at("card").hidden = !card;
  at("end").hidden = Boolean(card);
  at("rest").hidden = done === total;
  if (!card) {
    at("end-title").textContent = done === total ? "Everything is answered" : `${total - done} left unanswered`;
    return;
  }
  at("pictures").classList.remove("whole");
  at("pictures").replaceChildren(...card.pictures.map((name, k) => picture(name, card.titles[k])));
  at("words").textContent = card.words;
  at("words").hidden = !card.words;
  at("card").classList.toggle("many", card.asked.length > 2);
  at("asked").replaceChildren(...card.asked.map(question));
  at("back").disabled = place === 0;
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
  else if (key === "ARROWLEFT" && place > 0) back();
  else if (key === "ARROWRIGHT" && card) next();
  else return;
  event.preventDefault();
});
at("back").addEventListener("click", back);
at("next").addEventListener("click", next);
at("download").addEventListener("click", download);
at("rest").addEventListener("click", () => { place = -1; forward(); });
at("again").addEventListener("click", () => go(0));
keep();
forward();
