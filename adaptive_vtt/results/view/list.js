// The list of runs and the comparison follow the journals: the page is asked for anew, and what
// changed takes the place of what stood there. What was ticked, and where one was, stays.
"use strict";

const EVERY = 3000;
const live = document.getElementById("live");
let shown = live.innerHTML;

const ticked = () => [...live.querySelectorAll("input:checked")].map((box) => box.value);

function choose() {
  const button = document.getElementById("compare");
  if (!button) return;
  const count = ticked().length;
  button.disabled = count !== 2;
  document.getElementById("hint").textContent = count === 2 ? "" : `Tick two audits that certify; ${count} ticked.`;
}

function swap(html) {
  const names = new Set(ticked());
  const here = document.activeElement && document.activeElement.id;
  const scrolled = [...live.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  const figure = live.querySelector(".plot");
  live.innerHTML = html;
  const place = live.querySelector(".plot");
  if (place && !figure) location.reload(); // the first one: its scripts look for it once
  if (place && figure) place.replaceWith(figure);
  for (const box of live.querySelectorAll("input")) box.checked = names.has(box.value);
  [...live.querySelectorAll(".scroll")].forEach((box, k) => { box.scrollLeft = scrolled[k] || 0; });
  if (here && document.getElementById(here)) document.getElementById(here).focus({ preventScroll: true });
  choose();
  document.dispatchEvent(new Event("changed"));
}

async function follow() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      if (answer.redirected) location.assign(answer.url); // the folder became a run itself
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const html = page.getElementById("live").innerHTML;
      if (html !== shown) swap(shown = html);
      document.body.classList.remove("gone");
    } catch (error) {
      document.body.classList.add("gone"); // nobody serves any more; perhaps later
    }
  }
  setTimeout(follow, EVERY);
}

live.addEventListener("change", choose);
choose();
setTimeout(follow, EVERY);
