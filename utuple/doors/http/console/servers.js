// Servers: processing and memory over time, what each holds, and orders.

import { bytes, colour, css, duration, fill, h, number, percent, rate } from "./dom.js";
import { confirmed } from "./dialog.js";
import { absent, advice } from "./frame.js";
import { state } from "./state.js";

const CHARTED = 24;

function chart(box, title, column, top) {
  let plot = null, names = "", width = 0;
  const draw = () => {
    const shown = state.servers.slice(0, CHARTED).map((one) => one.name);
    const data = [state.history.map(([at]) => at), ...shown.map((name) => state.history.map(([, of]) => of[name]?.[column] ?? null))];
    const key = shown.join() + document.documentElement.dataset.theme + css("--soft");
    const now = box.clientWidth;
    if (!now) return;
    if (!plot || key !== names || now !== width) {
      plot?.destroy();
      names = key;
      width = now;
      const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: `11px ${css("--font")}` };
      plot = new uPlot({
        width, height: 190, cursor: { y: false }, legend: { show: false },
        scales: { y: { range: (u, low, high) => [0, Math.max(top, high * 1.1 || top)] } },
        axes: [axis, { ...axis, size: 46, values: (u, ticks) => ticks.map((tick) => (top === 1 || top < 1 ? `${Math.round(100 * tick)}%` : number(tick))) }],
        series: [{}, ...shown.map((name) => ({ label: name, stroke: colour(name), width: 2, points: { show: false }, spanGaps: false }))],
      }, data, box);
    } else plot.setData(data);
  };
  return { draw, close: () => plot?.destroy() };
}

const CAUSES = [["events", "events"], ["searches", "searches"], ["deliveries", "deliveries"]];

export function servers(main) {
  const none = h("div"), hints = h("div"), cards = h("div", { class: "cards" });
  const busyBox = h("div", { class: "plot" }), memoryBox = h("div", { class: "plot" });
  const legend = h("ul", { class: "legend" });
  const others = h("section", { class: "card" });
  const view = h("div", {},
    h("div", { class: "title" }, h("h1", {}, "Servers"), h("button", { class: "primary", type: "button", onclick: add }, "Add a server")),
    hints,
    h("div", { class: "columns even" },
      h("section", { class: "card", "aria-label": "Processing" }, h("h2", {}, "Processing"), h("p", { class: "soft" }, "Busy share of each writer"), busyBox),
      h("section", { class: "card", "aria-label": "Memory" }, h("h2", {}, "Memory"), h("p", { class: "soft" }, "Size of each store against its capacity"), memoryBox)),
    legend, cards, others);
  main.append(none, view);
  const busy = chart(busyBox, "Processing", 0, 1), memory = chart(memoryBox, "Memory", 1, 0.05);

  function add() {
    confirmed({
      title: "Add a server", text: "It is started on this machine with a database of its own, and takes over a part of the most loaded section. No program notices.",
      fields: [{ name: "name", label: "Name", placeholder: "the next free one" }], path: "/v1/servers", button: "Add it",
      say: (would) => `${would.name} at ${would.address}`,
    });
  }

  function help(name) {
    const able = state.servers.filter((one) => one.name !== name && one.state === "serving").map((one) => [one.name, one.name]);
    confirmed({
      title: `Help ${name}`, text: "Another server takes new events of a section, too. EFs and CAs of it wait for some milliseconds, events never.",
      fields: [{ name: "helper", label: "Who helps", options: [["", "the least loaded"], ...able] }, { name: "memory", label: "For memory: it takes nothing new any more", type: "checkbox" }],
      path: `/v1/servers/${encodeURIComponent(name)}/help`, button: "Order it",
      say: (would) => `${would.helper} helps ${name} with the section from ${would.before.start}, which has ${would.after[0].members.length} servers then`,
    });
  }

  function drain(one) {
    const stays = one.leaving;
    confirmed({
      title: stays ? `Keep ${one.name}` : `Drain ${one.name}`, danger: !stays,
      text: stays ? "It stays after all: the drain is undone, since nothing was brought away yet." : "It leaves the cluster: what it holds is brought to others in the background, nothing is lost. At the end it is stopped. While nothing was brought away you can keep it; after that, add a server again.",
      path: `/v1/servers/${encodeURIComponent(one.name)}/drain`, body: stays ? { cancel: true } : {}, button: stays ? "Keep it" : "Drain it",
      say: (would) => (stays ? `${one.name} stays` : `${one.name} leaves its ${would.lines.length} section${would.lines.length === 1 ? "" : "s"}`),
    });
  }

  function meter(label, value, text) {
    const share = Math.min(1, value || 0);
    return h("div", { class: "meter" },
      h("span", {}, label), h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: share > 0.7 ? "hot" : "", style: { width: `${Math.max(1, 100 * share)}%` } })),
      h("span", { class: "mono" }, text));
  }

  function card(one) {
    const serves = one.state === "serving";
    const load = one.load || {};
    const causes = load.by_cause || {};
    return h("article", { class: `card server ${serves ? "" : "gone"}`, "aria-label": one.name },
      h("h2", {}, h("span", { class: "dot", style: { background: colour(one.name) } }), one.name,
        h("span", { class: `tag ${serves ? "good" : "bad"}` }, one.leaving ? "leaving" : one.state)),
      serves ? [
        meter("Processing", load.busy, percent(load.busy)),
        CAUSES.map(([label, key]) => meter(`· ${label}`, causes[key], percent(causes[key]))),
        meter("Memory", one.capacity_bytes ? one.size_bytes / one.capacity_bytes : 0, one.capacity_bytes ? percent(one.size_bytes / one.capacity_bytes) : bytes(one.size_bytes)),
        h("dl", { class: "facts" },
          fact("Arriving", rate(load.arrival_per_s)), fact("Queue", number(load.queued)), fact("Service", rate(load.service_per_s)),
          fact("Events", number(one.events)), fact("EFs", number(one.event_templates)), fact("Devices", number(one.devices)),
          fact("Store", bytes(one.size_bytes)), fact("Sections", `${one.sections} (${one.on} on)`), fact("Up", one.since_us ? duration(Date.now() / 1000 - one.since_us / 1e6) : "–"),
          one.longest_pause_us ? fact("Longest pause", duration(one.longest_pause_us / 1e6)) : null),
        h("p", { class: "buttons" },
          h("button", { type: "button", class: "quiet", "aria-label": `Help ${one.name}`, onclick: () => help(one.name) }, "Help …"),
          h("button", { type: "button", class: "quiet", "aria-label": `${one.leaving ? "Keep" : "Drain"} ${one.name}`, onclick: () => drain(one) }, one.leaving ? "Keep …" : "Drain …")),
      ] : h("p", { class: "bad-text" }, `It does not serve. Start it again, or see logs/${one.name}.log; its sections wait for it.`));
  }

  const fact = (label, value) => h("div", {}, h("dt", {}, label), h("dd", {}, value));

  function update(parts) {
    const missing = absent();
    fill(none, missing);
    view.hidden = Boolean(missing);
    if (missing) return;
    if (parts.has("summary")) fill(hints, advice());
    if (parts.has("servers")) {
      const focused = document.activeElement?.getAttribute("aria-label");
      fill(cards, state.servers.map(card));
      if (focused) cards.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
      fill(legend, state.servers.slice(0, CHARTED).map((one) => h("li", {}, h("span", { class: "dot", style: { background: colour(one.name) } }), one.name)));
    }
    if (parts.has("programs")) {
      const { managers, scas, monitors } = state.programs;
      fill(others, h("h2", {}, "Other programs"), h("ul", { class: "programs" },
        [...managers.map((one) => [one, `${one.peers} peers, ${one.kept} lines kept`]),
          ...scas.map((one) => [one, `${number(one.devices)} devices, ${number(one.commands)} commands, ${number(one.handed_over)} handed over`]),
          ...monitors.map((one) => [one, `${number(one.accepted)} moves ordered, ${number(one.refused)} refused`])].map(([one, text]) =>
          h("li", {}, h("span", { class: `tag ${["serving", "watching"].includes(one.state) ? "good" : "bad"}` }, one.state), h("strong", {}, one.name), h("span", { class: "soft" }, text)))));
    }
    if (parts.has("sample") || parts.has("history") || parts.has("servers")) { busy.draw(); memory.draw(); }
  }
  const resized = () => { busy.draw(); memory.draw(); };
  addEventListener("resize", resized);
  return { update, close: () => { removeEventListener("resize", resized); busy.close(); memory.close(); } };
}
