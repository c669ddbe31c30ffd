// The gallery: cards of failing calls, chosen by filters that live in the address, and one opened large.
// "#failures?target=3&relation=1" filters, "#failure-17" opens call 17; both may be sent to somebody.
"use strict";

(() => {
  const items = avtt.read("failures-data");
  const list = document.getElementById("failures-list");
  if (!items || !list) return;
  const STEP = window.innerWidth < 640 ? 6 : 9;  // cards on a phone are as wide as it is
  const pictures = avtt.read("pictures");
  const byId = (name) => document.getElementById(name);
  const selects = [...document.querySelectorAll("[data-filter]")];
  const wordsOf = Object.fromEntries(selects.map((s) => [s.dataset.filter, Object.fromEntries([...s.options].map((o) => [o.value, o.text]))]));
  let shown = items;
  let limit = STEP;

  const make = (tag, text = "", className = "") => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // -- cards ---------------------------------------------------------------------------
  const view = (shown, alt) => {
    const figure = make("figure");
    const frame = make("div", "", "view");
    if (shown.ratio) frame.style.aspectRatio = shown.ratio;
    if (shown.picture === null) frame.append(make("div", shown.bare || "the journal kept no picture", "blank"));
    else {
      const image = make("img", "", Math.max(pictures[shown.picture][1], pictures[shown.picture][2]) < 96 ? "tiny" : "");
      [image.width, image.height, image.alt] = [pictures[shown.picture][1], pictures[shown.picture][2], alt];
      [image.loading, image.decoding, image.src] = ["lazy", "async", pictures[shown.picture][0]];
      frame.append(image);
    }
    for (const [left, top, width, height, name, wrong] of shown.boxes || []) {
      const box = make("span", "", wrong ? "box wrong" : "box");
      Object.assign(box.style, { left: `${left}%`, top: `${top}%`, width: `${width}%`, height: `${height}%` });
      box.append(make("i", name));
      frame.append(box);
    }
    figure.append(frame, make("figcaption", shown.caption));
    return figure;
  };

  // A question in words, with its options; the right one, or the right answer, is marked.
  const asked = ({ question, options, right }) => {
    const all = make("div", "", "asked");
    all.append(make("p", question));
    const list = make("ul");
    for (const [letter, text, is] of options) list.append(make("li", `${letter}. ${text}${is ? " (right)" : ""}`, is ? "is-right" : ""));
    if (right) list.append(make("li", `right: ${right}`, "is-right"));
    all.append(list);
    return all;
  };

  const line = (about) => {
    const item = make("li");
    const what = make("span", "", "what");
    what.append(make("b", about.name), ` ${about.is}`);
    const answer = make("span", "", "answer");
    if (about.at !== null) {
      const scale = make("span", "", "scale");
      const mark = make("span");
      scale.setAttribute("aria-hidden", "true");
      mark.style.left = `${100 * about.at}%`;
      scale.append(mark);
      answer.append(scale);
    }
    answer.append(about.text);
    item.append(what, answer);
    if (about.asked) item.append(asked(about.asked));
    if (about.rule) item.append(make("span", about.rule, "rule"));
    return item;
  };

  const replied = (item) => {
    if (!item.reply) return [];
    const raw = make("li");
    raw.append(make("span", `reply: “${item.reply}”`, "rule"));
    return [raw];
  };

  const alt = (item, k) => (item.views.length > 1 && k === 0 ? `source image of ${item.sample}` : `${item.sample} after ${item.change}`);

  const LISTED = 4;
  const card = (item) => {
    const article = make("article", "", "failure");
    const open = make("a", "", "pair");
    open.href = `#failure-${item.id}`;
    open.setAttribute("aria-label", `Open ${item.sample}, ${item.change}`);
    const name = make("p", item.sample, "failure-name");
    open.append(...(item.views.length ? item.views.map((each, k) => view(each, alt(item, k))) : [name]));
    const lines = make("ul", "", "mistakes");
    lines.append(...item.lines.slice(0, LISTED).map(line), ...replied(item));
    article.append(open, ...(item.views.length ? [name] : []), lines);
    const more = item.lines.length - LISTED;
    const note = [more > 0 ? `${more} more wrong` : "", item.note].filter(Boolean).join(" · ");
    if (note) article.append(make("p", note, "caption"));
    return article;
  };

  // -- filters -------------------------------------------------------------------------
  let sample = "";  // an image that has no menu: figures lead to it
  const chosen = () => Object.fromEntries([...selects.map((s) => [s.dataset.filter, s.value]), ["sample", sample]].filter(([, value]) => value !== ""));
  const fits = (item, want) =>
    (!("target" in want) || item.targets.includes(Number(want.target))) &&
    (!("relation" in want) || item.relation === Number(want.relation)) &&
    (!("sample" in want) || item.sample === want.sample) &&
    (!("severity" in want) || item.severity === Number(want.severity)) &&
    item.lines.some((l) => (!("concept" in want) || String(l.key) === want.concept) && (!("truth" in want) || String(l.truth) === want.truth));

  const fill = () => {
    const from = list.children.length;
    list.append(...shown.slice(from, limit).map(card));
    const rest = shown.length - list.children.length;
    byId("failures-more").hidden = rest <= 0;
    byId("failures-more").textContent = `Show ${Math.min(rest, 5 * STEP)} more`;
    byId("failures-count").textContent = shown.length
      ? `${list.children.length} of ${shown.length} shown${sample ? `, of ${sample}` : ""}`
      : `Nothing ${sample ? `of ${sample}` : "of this kind"} was answered wrongly.`;
  };

  const show = () => {
    const want = chosen();
    shown = items.filter((item) => fits(item, want));
    limit = STEP;
    list.replaceChildren();
    byId("failures-clear").hidden = !Object.keys(want).length;
    fill();
  };

  const address = () => {
    const query = new URLSearchParams(chosen()).toString();
    return query ? `#failures?${query}` : "#failures";
  };

  for (const select of selects) select.addEventListener("change", () => { show(); history.replaceState(null, "", address()); });
  byId("failures-clear").addEventListener("click", () => { for (const s of selects) s.value = ""; sample = ""; show(); history.replaceState(null, "", address()); });
  byId("failures-more").addEventListener("click", () => {
    const next = list.children.length;
    limit += 5 * STEP;
    fill();
    list.children[next].querySelector("a").focus();
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const links = [...list.querySelectorAll("a.pair")];
    const to = links[links.indexOf(document.activeElement) + step];
    if (step && to) { event.preventDefault(); to.focus(); }
  });

  // -- one, large ----------------------------------------------------------------------
  const dialog = byId("failure");
  let current = -1;

  const pixels = async (address) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return { canvas, context, data: context.getImageData(0, 0, image.width, image.height) };
  };

  // Where the follow-up differs from its source, the largest difference as white.
  const difference = async (item) => {
    const [one, other] = item.views.map((v) => (v.picture === null ? null : pictures[v.picture]));
    if (!one || !other || one[1] !== other[1] || one[2] !== other[2]) return null;
    const [before, after] = await Promise.all([pixels(one[0]), pixels(other[0])]);
    const [out, source] = [after.data, before.data.data];
    const apart = (i) => Math.abs(out.data[i] - source[i]);
    let most = 1;
    for (let i = 0; i < source.length; i++) if (i % 4 < 3) most = Math.max(most, apart(i));
    for (let i = 0; i < source.length; i++) if (i % 4 < 3) out.data[i] = (255 * apart(i)) / most;
    after.context.putImageData(out, 0, 0);
    after.canvas.setAttribute("role", "img");
    after.canvas.setAttribute("aria-label", "difference of the two");
    if (Math.max(one[1], one[2]) < 96) after.canvas.className = "tiny";
    const figure = make("figure");
    const frame = make("div", "", "view");
    frame.append(after.canvas);
    figure.append(frame, make("figcaption", `difference, the largest (${Math.round(most / 2.55)}\u202f%) as white`));
    return figure;
  };

  const facts = (item) => {
    const relation = wordsOf.relation && wordsOf.relation[item.relation];
    const rows = [["Relation", relation || item.change], ["Severity", String(item.severity)]];
    if (wordsOf.target && item.targets.length) rows.push(["Counts for", item.targets.map((k) => wordsOf.target[k]).join(", ")]);
    return rows;
  };

  const open = (at) => {
    current = at;
    const item = shown[at];
    byId("failure-title").textContent = item.sample;
    byId("failure-place").textContent = `${at + 1} of ${shown.length}`;
    byId("failure-views").replaceChildren(...item.views.map((each, k) => view(each, alt(item, k))));
    byId("failure-facts").replaceChildren(...facts(item).flatMap(([name, value]) => [make("dt", name), make("dd", value)]));
    byId("failure-lines").replaceChildren(...item.lines.map(line), ...replied(item));
    byId("failure-note").textContent = item.note;
    byId("failure-previous").disabled = at === 0;
    byId("failure-next").disabled = at === shown.length - 1;
    if (!dialog.open) { dialog.showModal(); byId("failure-close").focus(); }
    if (item.views.length === 2) difference(item).then((figure) => { if (figure && current === at) byId("failure-views").append(figure); }).catch(() => {});
  };

  const go = (step) => {
    const item = shown[current + step];
    if (item) { history.replaceState(null, "", `#failure-${item.id}`); open(current + step); }
  };
  byId("failure-previous").addEventListener("click", () => go(-1));
  byId("failure-next").addEventListener("click", () => go(1));
  const close = () => {
    dialog.close();
    history.replaceState(null, "", address());
    const at = list.querySelector(`a[href="#failure-${shown[current].id}"]`);
    if (at) at.focus({ preventScroll: true });
  };
  byId("failure-close").addEventListener("click", close);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });  // Escape
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) { event.preventDefault(); go(step); }
  });

  // -- the address ---------------------------------------------------------------------
  const follow = (first) => {
    const single = /^#failure-(\d+)$/.exec(location.hash);
    const filtered = /^#failures\?(.*)$/.exec(location.hash);
    if (single) {
      const is = (item) => item.id === Number(single[1]);
      if (!shown.some(is)) { for (const s of selects) s.value = ""; sample = ""; show(); }
      const at = shown.findIndex(is);
      if (at >= 0) open(at);
      return;
    }
    if (dialog.open) dialog.close();
    if (!filtered) return;
    const want = new URLSearchParams(filtered[1]);
    for (const select of selects) select.value = want.get(select.dataset.filter) || "";
    sample = want.get("sample") || "";
    show();
    byId("failures").scrollIntoView({ behavior: first ? "instant" : "auto" });
  };
  window.addEventListener("hashchange", () => follow(false));
  show();
  follow(true);
})();
