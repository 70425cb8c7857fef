// Updates the list, counts down, and handles keys. Without it the pages work, but do not update.
"use strict";

const calls = document.getElementById("calls");
const names = (root) => new Set(Array.from(root.querySelectorAll(".call"), (call) => call.id));

function say(before, now) {
  const come = [...now].filter((id) => !before.has(id)).length;
  const waits = now.size === 1 ? "1 call waits" : `${now.size} calls wait`;
  if (come) document.getElementById("said").textContent = `${come} new; ${waits}`;
  document.title = now.size ? `(${now.size}) Approvals - mcpwrap` : "Approvals - mcpwrap";
}

async function refresh() {
  const answer = await fetch(calls.dataset.piece);
  if (answer.status === 401) return location.reload();
  const piece = new DOMParser().parseFromString(await answer.text(), "text/html");
  // If the gate does not answer, the piece is a page with that problem.
  const fresh = answer.ok ? piece.body : piece.querySelector(".problem");
  const before = names(calls);
  const held = document.activeElement?.id;
  calls.replaceChildren(...(answer.ok ? fresh.childNodes : [fresh]));
  if (held) document.getElementById(held)?.focus();
  say(before, names(calls));
  count();
}

function follow() {
  let last = Promise.resolve();
  const source = new EventSource(calls.dataset.live);
  // One after the other, so that an older list never replaces a newer one.
  source.addEventListener("changed", () => { last = last.then(refresh).catch(() => {}); });
  source.addEventListener("over", () => location.reload());
  source.addEventListener("error", () => {
    // The browser does not retry after a refusal: the session is over, or the service restarts.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2000);
  });
}

function count() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const left = Math.round((Date.parse(time.dateTime) - Date.now()) / 1000);
    time.title ||= time.textContent;
    time.textContent = left <= 0 ? "now" : left < 60 ? `in ${left} s` : `in ${Math.round(left / 60)} min`;
  }
}

function move(step) {
  const all = Array.from(document.querySelectorAll(".call"));
  const at = all.indexOf(document.activeElement);
  all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
}

// Only on the page of a call: a person reads it before answering.
function answer(verdict) {
  const choice = document.getElementById(verdict);
  if (!choice) return;
  choice.checked = true;
  document.getElementById("password").focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  a: () => answer("approve"),
  d: () => answer("deny"),
  u: () => { if (!calls) location.assign("/"); },
};

document.addEventListener("keydown", (event) => {
  const isText = event.target.matches?.("input:not([type=radio]), textarea, select");
  if (isText && event.key === "Escape") event.target.blur();
  if (isText || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

if (calls) follow();
count();
setInterval(count, 1000);
