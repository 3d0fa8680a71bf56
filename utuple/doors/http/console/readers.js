// Readers and devices: who reads, how far each is behind, what it missed; and where devices are.

import { ago, duration, fill, h, number, table, toast } from "./dom.js";
import { absent, stat } from "./frame.js";
import { ask, state } from "./state.js";

export function readers(main) {
  const none = h("div"), figures = h("dl", { class: "stats" }), list = h("section", { class: "card" }), devices = h("section", { class: "card" });
  const view = h("div", {}, h("h1", {}, "Readers and devices"), figures, list, devices);
  main.append(none, view);

  async function forget(name) {
    if (!confirm(`Forget reader “${name}”? What waits for it is no longer kept for it.`)) return;
    try {
      await ask("DELETE", `/v1/readers/${encodeURIComponent(name)}`);
      toast(`${name} is forgotten`, "good");
    } catch (error) { toast(error.message, "bad"); }
  }

  function row(one) {
    const session = one.reader.startsWith("session-");
    return [
      h("td", {}, session ? h("span", { class: "soft" }, "without a name") : h("strong", {}, one.reader)),
      h("td", {}, h("span", { class: `tag ${one.connected ? "good" : "warn"}` }, one.connected ? "connected" : `away, seen ${ago(one.seen_us)}`)),
      h("td", { class: "figure" }, number(one.lag) + (one.lag_is_more ? "+" : "")),
      one.dropped === undefined ? null : h("td", { class: "figure" }, number(one.dropped)),
      one.parked === undefined ? null : h("td", { class: "figure" }, number(one.parked)),
      h("td", {}, one.families.join(", ")), h("td", {}, one.server),
      h("td", {}, one.expires_us ? `in ${duration(one.expires_us / 1e6 - Date.now() / 1000)}` : "–"),
      h("td", {}, one.connected || session ? "" : h("button", { class: "quiet", type: "button", "aria-label": `Forget ${one.reader}`, onclick: () => forget(one.reader) }, "Forget")),
    ].filter((cell) => cell !== null);
  }

  function update(parts) {
    const missing = absent();
    fill(none, missing);
    view.hidden = Boolean(missing);
    if (missing) return;
    const rows = state.readers || [];
    if (parts.has("readers") || parts.has("summary")) {
      const behind = new Map(), here = new Set(); // a reader has a row for each server that keeps its formals
      for (const one of rows) {
        behind.set(one.reader, (behind.get(one.reader) || 0) + one.lag);
        if (one.connected) here.add(one.reader);
      }
      const scas = state.programs.scas;
      fill(figures, stat("Readers", number(behind.size)), stat("Away", number(behind.size - here.size)), stat("Most behind", number(Math.max(0, ...behind.values()))),
        stat("Devices", number(state.summary.devices)), stat("Commands handed over", number(scas.reduce((sum, one) => sum + one.handed_over, 0))));
    }
    if (parts.has("readers") || !list.childElementCount) {
      const more = ["dropped", "parked"].filter((name) => rows[0]?.[name] !== undefined).map((name) => name[0].toUpperCase() + name.slice(1));
      fill(list, h("h2", {}, "Readers"), state.readers === null ? h("p", { class: "empty" }, "Counting …")
        : table("Readers", ["Reader", "State", "Behind by", ...more, "Reads", "At", "Forgotten", "Order"], rows.map(row), "Nobody reads. A program does with space.watch(…, reader=\"name\"), and utuple watch --reader name."));
    }
    if (parts.has("servers") || parts.has("programs")) {
      fill(devices, h("h2", {}, "Devices"), table("Devices", ["Program", "Devices", "Connected", "Commands", "Handed over"],
        [...state.programs.scas.map((one) => [one.name, number(one.devices), number(one.connected), number(one.commands), number(one.handed_over)]),
          ...state.servers.map((one) => [one.name, number(one.devices), "–", "–", "–"])], "No device. One is a program that runs space.serve(…)."));
    }
  }
  return { update };
}
