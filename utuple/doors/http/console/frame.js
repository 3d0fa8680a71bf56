// What every page says when there is nothing to show.

import { h } from "./dom.js";
import { forOperators } from "./signin.js";
import { state } from "./state.js";

export function absent() {
  if (state.refused) return forOperators(state.refused.detail);
  if (state.cluster && !state.cluster.answers) {
    return h("section", { class: "card empty-card" },
      h("h2", {}, "No cluster answers"),
      h("p", {}, state.cluster.why),
      h("p", {}, "Start one with ", h("code", {}, state.cluster.data ? `utuple up --data ${state.cluster.data}` : "utuple up"),
        "; this page goes on by itself."));
  }
  if (!state.summary) return h("p", { class: "empty" }, "Asking the cluster …");
  return null;
}

export function stat(label, value, note) {
  return h("div", { class: "stat" }, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, note) : null));
}

export const fact = (label, value) => h("div", {}, h("dt", {}, label), h("dd", {}, value));

export function advice() {
  const said = [...(state.summary?.missing || []), ...(state.summary?.advice || [])];
  const gone = state.summary?.unreachable || [];
  const lines = [
    ...gone.map((name) => `${name} does not serve: start it again, or see its log (logs/${name}.log). Its sections wait for it.`),
    ...said,
  ];
  if (!lines.length) return null;
  return h("section", { class: "card advice", "aria-label": "Advice" },
    h("h2", {}, gone.length ? "Something is missing" : "Advice"), h("ul", {}, lines.map((line) => h("li", {}, line))));
}
