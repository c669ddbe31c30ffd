// One card at a time, with all its questions.

const keyOf = (one) => JSON.stringify([one.card, one.question]);
const rowOf = (a) => [a.card, a.question, form.person, a.answer, a.time];

// -- where one stands --------------------------------------------------------------------
const given = (card, asked) => answers.get(keyOf({ card: card.number, question: asked.id }));
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

function put(card, asked, value) {
  const one = { card: card.number, question: asked.id, answer: value, time: new Date().toISOString() };
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
function picture(name, title) {
  const figure = document.createElement("figure");
  const image = document.createElement("img");
  image.src = form.pictures[name];
  image.alt = title;
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 64));
  image.addEventListener("click", () => at("pictures").classList.toggle("whole"));
  figure.append(image, make("figcaption", title));
  return figure;
}

function button(asked, value, name, key) {
  const said = given(form.cards[place], asked);
  const element = choiceButton(key, Boolean(said) && said.answer === value, [make("span", name)], () => answer(asked, value));
  element.classList.toggle("unsure", value === form.unsure);
  element.dataset.answer = value;
  return element;
}

// Keys: Y and N, and letters and digits for themselves, where every answer has a key of its own; else numbers
function choicesOf(asked) {
  const own = asked.choices.map(([value]) => ({ yes: "Y", no: "N" }[value] || value.toUpperCase()));
  const distinct = new Set(own.filter((key) => /^[A-TV-Z0-9]$/.test(key))); // U: cannot tell
  const keyAt = (index) => (distinct.size === own.length ? own[index] : index < 9 ? String(index + 1) : "");
  const named = asked.choices.map(([value, name], index) => [value, name, keyAt(index)]);
  return [...named, [form.unsure, "I cannot tell", "U"]];
}

function question(asked) {
  const element = document.createElement("fieldset");
  const choices = document.createElement("div");
  const card = form.cards[place];
  choices.className = asked.choices.length === 2 ? "choices short" : "choices";
  element.append(make("legend", asked.text));
  if (!asked.choices.length) {
    const words = document.createElement("textarea");
    const said = given(card, asked);
    words.value = said && said.answer !== form.unsure ? said.answer : "";
    words.maxLength = form.most_words;
    words.setAttribute("aria-label", asked.text);
    // nothing is drawn anew while somebody writes: a click that ends it would meet no button
    words.addEventListener("input", () => {
      if (!words.value.trim()) return;
      put(card, asked, words.value.trim());
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
  showPlace(form.cards, done, "answered");
  at("rest").hidden = done === form.cards.length;
  if (!card) return;
  [...at("asked").children].forEach((element, k) => { // idle: its keys do nothing now
    element.classList.toggle("idle", card.asked[k] !== open(card) && card.asked.length > 1);
  });
}

function show() {
  const card = form.cards[place];
  if (!card) return showDone();
  at("pictures").classList.remove("whole");
  at("pictures").replaceChildren(...card.pictures.map((name, k) => picture(name, card.titles[k])));
  at("words").textContent = card.words;
  at("words").hidden = !card.words;
  at("card").classList.toggle("many", card.asked.length > 2);
  at("asked").replaceChildren(...card.asked.map(question));
  at("back").disabled = place === 0;
  showDone();
}

// -- what one can do ---------------------------------------------------------------------
const back = () => go(place - 1);
const next = () => go(place + 1);

onKey((event) => {
  if (event.target.closest("textarea")) return;
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
at("rest").addEventListener("click", () => { place = -1; forward(); });
at("again").addEventListener("click", () => go(0));
recall(form.answers.map(([card, question, answer, time]) => ({ card, question, answer, time })), keyOf);
forward();
