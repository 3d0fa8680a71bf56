// The frame: navigation, whether all is well, and the page that is shown.

import { fill, h } from "./dom.js";
import { hasToken, signOut, takeFromAddress } from "./session.js";
import { signInCard } from "./signin.js";
import { listen, open, reopen, state } from "./state.js";
import { families } from "./families.js";
import { map } from "./map.js";
import { plan } from "./plan.js";
import { readers } from "./readers.js";
import { servers } from "./servers.js";
import { space } from "./space.js";

const PAGES = [
  ["space", "Space", space],
  ["servers", "Servers", servers],
  ["map", "Map", map],
  ["readers", "Readers", readers],
  ["families", "Families", families],
  ["plan", "Plan", plan],
];
const main = document.getElementById("main");
let shown = null;
let close = () => {};

function show() {
  takeFromAddress();
  const name = location.hash.slice(1) || "space";
  if (name === "main") return;
  const page = PAGES.find(([id]) => id === name) || PAGES[0];
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.hash === `#${page[0]}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page[1]} · uTupleSpace`;
  close();
  fill(main);
  shown = page[2](main);
  close = shown.close || (() => {});
  shown.update(new Set(Object.keys(state)));
  document.documentElement.dataset.shown = page[0];
}

// Instead of every page: who is not known sees nothing.
function askWho() {
  close();
  close = () => {};
  shown = null;
  fill(main, signInCard(state.refused.detail, () => { show(); reopen(); }));
  document.title = "Sign in · uTupleSpace";
  document.documentElement.dataset.shown = "sign-in";
  document.getElementById("token").focus();
}

function health(parts) {
  document.getElementById("out").hidden = !hasToken();
  if (parts.has("refused") && state.refused?.status === 401) askWho();
  const pill = document.getElementById("health");
  let kind = "wait", said = "connecting …";
  if (state.refused) [kind, said] = ["warn", state.refused.status === 401 ? "sign in" : "for operators"];
  else if (!state.connected && state.cluster) [kind, said] = ["bad", "the door does not answer"];
  else if (state.cluster && !state.cluster.answers) [kind, said] = ["bad", "no cluster answers"];
  else if (state.summary) {
    const gone = state.summary.unreachable;
    if (gone.length) [kind, said] = ["bad", `${gone.length > 2 ? `${gone.length} servers` : gone.join(", ")} not serving`];
    else if (!state.summary.well) [kind, said] = ["warn", "not everything serves"];
    else [kind, said] = ["good", "all well"];
  }
  if (pill.textContent !== said) pill.textContent = said;
  pill.className = `pill ${kind}`;
  const away = !state.connected && state.cluster;
  document.documentElement.classList.toggle("stale", Boolean(away));
  if (shown) shown.update(parts);
  if (state.summary) document.documentElement.dataset.drawn = "";
}

// Drawn anew in other colours; what was typed stays.
function recolour() {
  if (shown) shown.update(new Set(Object.keys(state)));
}

fill(document.getElementById("nav"), PAGES.map(([id, title]) =>
  h("li", {}, h("a", { href: `#${id}` }, title))));
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", dark ? "light" : "dark");
  recolour();
});
document.getElementById("out").addEventListener("click", () => { signOut(); location.reload(); });
addEventListener("hashchange", () => { if (state.refused?.status !== 401 || location.hash.startsWith("#token=")) { show(); if (state.refused) reopen(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
listen(health);
show();
open();
