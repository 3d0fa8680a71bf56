// Servers: processing and memory over time, what each holds, and orders.

import { bytes, clock, colour, css, duration, fill, h, number, percent, rate } from "./dom.js";
import { confirmed } from "./dialog.js";
import { absent, advice, fact } from "./frame.js";
import { state } from "./state.js";

const CHARTED = 24;
// The columns of a sample, as the door sends them.
const BUSY = 0, MEMORY = 1, QUEUE = 2, COMMIT = 3;
const CAUSES = [["events", 4], ["searches", 5], ["deliveries", 6]];

function chart(box, column, top, shown_as) {
  let plot = null, names = "", width = 0;
  const draw = () => {
    const shown = state.servers.slice(0, CHARTED).map((one) => one.name), drawn = column();
    const data = [state.history.map(([at]) => at), ...shown.map((name) => state.history.map(([, of]) => of[name]?.[drawn] ?? null))];
    const key = shown.join() + document.documentElement.dataset.theme + css("--soft");
    const now = box.clientWidth;
    if (!now) return;
    if (!plot || key !== names || now !== width) {
      plot?.destroy();
      names = key;
      width = now;
      const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: `11px ${css("--font")}` };
      plot = new uPlot({
        width, height: 180, cursor: { y: false }, legend: { show: false },
        scales: { y: { range: (u, low, high) => [0, Math.max(top, high * 1.1 || top)] } },
        axes: [{ ...axis, size: 28, values: (u, ticks) => ticks.map((at) => clock(at * 1e6)) }, { ...axis, size: 46, values: (u, ticks) => ticks.map(shown_as) }],
        series: [{}, ...shown.map((name) => ({ label: name, stroke: colour(name), width: 2, points: { show: false }, spanGaps: false }))],
      }, data, box);
    } else plot.setData(data);
  };
  return { draw, close: () => plot?.destroy() };
}

export function servers(main) {
  const none = h("div"), hints = h("div"), cards = h("div", { class: "cards" });
  const box = () => h("div", { class: "plot" });
  const busyBox = box(), memoryBox = box(), queueBox = box(), commitBox = box();
  const cause = h("select", { id: "cause", "aria-label": "Processing by cause", onchange: () => charts[0].draw() },
    h("option", { value: BUSY }, "all of it"), CAUSES.map(([name, column]) => h("option", { value: column }, name)));
  const drawn = (title, said, plot, more) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title, more || null), h("p", { class: "soft" }, said), plot);
  const legend = h("ul", { class: "legend" });
  const others = h("section", { class: "card" });
  const view = h("div", {},
    h("div", { class: "title" }, h("h1", {}, "Servers"), h("button", { class: "primary", type: "button", onclick: add }, "Add a server")),
    hints,
    h("div", { class: "columns even" },
      drawn("Processing", "Share of its time that each server is busy", busyBox, cause),
      drawn("Memory", "Size of each store against its capacity", memoryBox),
      drawn("Queue", "uTuples that wait for the writer", queueBox),
      drawn("Commit", "What a batch takes until it is durable and answered", commitBox)),
    legend, cards, others);
  main.append(none, view);
  const share = (tick) => `${Math.round(100 * tick)}%`;
  const charts = [chart(busyBox, () => Number(cause.value), 1, share), chart(memoryBox, () => MEMORY, 0.05, share),
    chart(queueBox, () => QUEUE, 10, number), chart(commitBox, () => COMMIT, 0.01, duration)];
  const draw = () => { for (const one of charts) one.draw(); };

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
        CAUSES.map(([name]) => meter(`· ${name}`, causes[name], percent(causes[name]))),
        meter("Memory", one.capacity_bytes ? one.size_bytes / one.capacity_bytes : 0, one.capacity_bytes ? percent(one.size_bytes / one.capacity_bytes) : bytes(one.size_bytes)),
        h("dl", { class: "facts" },
          fact("Arriving", rate(load.arrival_per_s)), fact("Queue", number(load.queued)), fact("Commit", load.commit_s ? duration(load.commit_s) : "–"),
          fact("Events", number(one.events)), fact("EFs", number(one.event_templates)), fact("Devices", number(one.devices)),
          fact("Store", bytes(one.size_bytes)), fact("Sections", `${one.sections} (${one.on} on)`), fact("Up", one.since_us ? duration(Date.now() / 1000 - one.since_us / 1e6) : "–"),
          holds(one.name) ? fact("Certificate", holds(one.name)) : null),
        h("p", { class: "buttons" },
          h("button", { type: "button", class: "quiet", "aria-label": `Help ${one.name}`, onclick: () => help(one.name) }, "Help …"),
          h("button", { type: "button", class: "quiet", "aria-label": `${one.leaving ? "Keep" : "Drain"} ${one.name}`, onclick: () => drain(one) }, one.leaving ? "Keep …" : "Drain …")),
      ] : h("p", { class: "bad-text" }, `It does not serve. Start it again, or see logs/${one.name}.log; its sections wait for it.`));
  }

  // Until when its certificate holds; nothing where the cluster is not secured.
  const holds = (name) => {
    const held = (state.programs.certificates || []).find((one) => one.name === name);
    if (!held) return "";
    const left = held.until_us / 1e6 - Date.now() / 1000;
    return left > 0 ? `${duration(left)} left` : "has ended";
  };

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
        [...managers.map((one) => [one, `answers for ${one.peers} of the lines, keeps ${one.kept}`]),
          ...scas.map((one) => [one, `${number(one.devices)} devices, ${number(one.commands)} commands, ${number(one.handed_over)} handed over`]),
          ...monitors.map((one) => [one, `${number(one.accepted)} moves ordered, ${number(one.refused)} refused`])].map(([one, text]) =>
          h("li", {}, h("span", { class: `tag ${["serving", "watching"].includes(one.state) ? "good" : "bad"}` }, one.state), h("strong", {}, one.name), h("span", { class: "soft" }, text, holds(one.name) ? `, certificate ${holds(one.name)}` : "")))));
    }
    if (parts.has("sample") || parts.has("history") || parts.has("servers")) draw();
  }
  addEventListener("resize", draw);
  return { update, close: () => { removeEventListener("resize", draw); for (const one of charts) one.close(); } };
}
