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

// A preview comes within 2 s of its call, or never: a page that was opened before that waits for it.
// Nothing else of the page changes, so that an answer is to what was read.
function awaitPreview(preview) {
  const source = new EventSource(preview.dataset.live);
  source.addEventListener("changed", async () => {
    const answer = await fetch(location.pathname);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("preview");
    if (!fresh?.dataset.has || source.readyState === EventSource.CLOSED) return;
    source.close();
    preview.replaceChildren(...fresh.childNodes);
  });
  setTimeout(() => source.close(), 5000);
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

// On the page of a group: all calls that it shows, or none of them.
const ticks = () => Array.from(document.querySelectorAll("#group input[type=checkbox]"));
function tick(is) {
  for (const box of ticks()) box.checked = is;
  tell();
}

function tell() {
  const progress = document.getElementById("progress");
  if (progress) progress.textContent = `${ticks().filter((box) => box.checked).length} of ${ticks().length} calls are ticked`;
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  g: () => document.querySelector(".together")?.focus(),
  a: () => answer("approve"),
  d: () => answer("deny"),
  A: () => tick(true),
  N: () => tick(false),
  u: () => { if (!calls) location.assign("/"); },
};

document.addEventListener("keydown", (event) => {
  const isText = event.target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
  if (isText && event.key === "Escape") event.target.blur();
  if (isText || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.getElementById("group")?.addEventListener("change", tell);
document.getElementById("group")?.addEventListener("submit", () => {
  const count = ticks().filter((box) => box.checked).length;
  document.getElementById("progress").textContent = `Sending ${count} answers, one after the other`;
});
tell();
if (calls) follow();
const preview = document.getElementById("preview");
if (preview && !preview.dataset.has) awaitPreview(preview);
count();
setInterval(count, 1000);
