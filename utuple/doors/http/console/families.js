// Families: kinds of device and data, the busiest first.

import { bytes, colour, fill, h, number, rate } from "./dom.js";
import { absent, fact } from "./frame.js";
import { state } from "./state.js";

export function families(main) {
  const none = h("div"), list = h("div", { class: "families" });
  const view = h("div", {}, h("h1", {}, "Families"), h("p", { class: "soft" }, "A family is a subject and a type. The busiest of every server: events a second, the mean size of their data, and how many EFs (readers) and CAs (waiting commands) ask for them."), list);
  main.append(none, view);

  function update(parts) {
    const missing = absent();
    fill(none, missing);
    view.hidden = Boolean(missing);
    if (missing || !(parts.has("families") || !list.childElementCount)) return;
    const most = Math.max(1e-9, ...state.families.map((one) => one.arrival_per_s));
    fill(list, state.families.length ? state.families.slice(0, 100).map((one) => h("article", { class: "card family" },
      h("h2", {}, one.subject, h("span", { class: "soft" }, " / "), one.type),
      h("div", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${Math.max(0.5, (100 * one.arrival_per_s) / most)}%` } })),
      h("dl", { class: "facts" }, fact("Arriving", rate(one.arrival_per_s)), fact("Size", one.bytes_per_s ? bytes(one.bytes_per_s / one.arrival_per_s) : "–"),
        fact("Data", one.bytes_per_s ? `${bytes(one.bytes_per_s)}/s` : "–"), fact("EFs", number(one.event_templates)), fact("CAs", number(one.command_templates)), fact("Servers", number(one.servers.length))),
      h("p", {}, one.servers.map((name) => h("span", { class: "tag" }, h("span", { class: "dot", style: { background: colour(name) } }), name)),
        h("a", { href: `#map`, onclick: () => sessionStorage.setItem("family", JSON.stringify([one.subject, one.type])) }, "on the map"))))
      : h("p", { class: "empty" }, "Nothing comes in now. Emit something: utuple emit --subject truck --type load --address truck-17 --data '{\"kg\": 1200}'"));
  }
  return { update };
}
