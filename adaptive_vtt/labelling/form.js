// One object at a time.

const keyOf = (label) => JSON.stringify([label.question, label.object]);
const rowOf = (l) => [l.question, l.object, form.person, l.type === form.none ? "no" : "yes", l.type, l.time];

// -- where one stands --------------------------------------------------------------------
const labelOf = (item) => answers.get(keyOf(item));

function forward() {
  do place += 1; while (place < form.items.length && labelOf(form.items[place]));
  show();
}

function answer(type) {
  const { question, object } = form.items[place];
  const label = { question, object, type, time: new Date().toISOString() };
  answers.set(keyOf(label), label);
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
  const end = found + word.length;
  element.replaceChildren(text.slice(0, found), make("mark", text.slice(found, end)), text.slice(end));
}

function outlines(boxes, [height, width]) {
  const drawn = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const svg = drawn("svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  for (const [left, top, right, bottom] of boxes) for (const kind of ["edge", ""]) {
    const rect = drawn("rect");
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
  const parts = [make("b", type === form.none ? "No error" : type), make("span", meaning)];
  if (type === item.prelabel) {
    const note = make("span", "pre-label");
    note.className = "verdict right";
    parts.push(note);
  }
  return choiceButton(index, Boolean(given) && given.type === type, parts, () => answer(type));
}

function show() {
  const item = form.items[place];
  showPlace(form.items, form.items.filter(labelOf).length, "labelled");
  if (!item) return;
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

onKey((event) => {
  const key = event.key.toLowerCase();
  if (key === "b" && place === form.items.length) return back();
  if (place >= form.items.length || !(key in ways)) return;
  if (key === "enter" && event.target.closest("button")) return; // it presses that button
  event.preventDefault();
  ways[key]();
});
at("back").addEventListener("click", back);
at("skip").addEventListener("click", forward);
at("confirm").addEventListener("click", ways.enter);
at("again").addEventListener("click", () => { place = 0; show(); });
recall(form.labels.map(([question, object, type, time]) => ({ question, object, type, time })), keyOf);
forward();
