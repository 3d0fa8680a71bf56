// The hash space as a ring: every section with its members, from the home inwards. Filled: it takes new events.

import { ago, clock, colour, css, duration, fill, h, number, rate, table } from "./dom.js";
import { absent, advice, stat } from "./frame.js";
import { state } from "./state.js";

const SPACE = 2 ** 64;
const FLASH_MS = 2500;
const LISTED = 200;

const at = (hex) => Number(BigInt(`0x${hex}`)) / SPACE;

export function space(main) {
  let selected = null, followed = null, picture = 0;
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "The hash space as a ring" });
  const figures = h("dl", { class: "stats" });
  const detail = h("section", { class: "card", "aria-label": "Section" });
  const moves = h("section", { class: "card", "aria-label": "Moves" });
  const lines = h("section", { class: "card wide" });
  const hints = h("div");
  const legend = h("ul", { class: "legend" });
  const view = h("div", {},
    h("h1", {}, "Space"), hints, figures,
    h("div", { class: "columns" },
      h("section", { class: "card ring", "aria-label": "Ring" }, h("div", { class: "canvas-box" }, canvas), legend),
      h("div", { class: "stack" }, detail, moves)),
    lines);
  const none = h("div");
  main.append(none, view);

  const list = () => [...state.lines.values()];

  function draw() {
    picture = 0;
    const box = canvas.parentElement, size = Math.min(box.clientWidth, 560);
    if (!size) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(size * scale) || canvas.height !== canvas.width) {
      canvas.width = canvas.height = Math.round(size * scale);
      canvas.style.width = canvas.style.height = `${size}px`;
    }
    const pen = canvas.getContext("2d"), now = performance.now();
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, size, size);
    const middle = size / 2, outer = middle - 10, thick = Math.max(14, size * 0.062);
    let flashing = false;
    const all = list(), gap = all.length > 400 ? 0 : 0.006;
    for (const [start, end, , members] of all) {
      const from = at(start) * 2 * Math.PI - Math.PI / 2, to = at(end) * 2 * Math.PI - Math.PI / 2;
      const width = Math.max(to - from - gap, 0.0008);
      members.forEach(([name, on, suspended], ring) => {
        if (ring > 4) return;
        const radius = outer - thick / 2 - ring * (thick + 4);
        pen.beginPath();
        pen.arc(middle, middle, radius, from, from + width);
        pen.lineWidth = on ? thick : thick * 0.36;
        pen.strokeStyle = suspended ? css("--bad") : colour(name, on ? 1 : 0.55);
        pen.stroke();
      });
      const changed = state.changed.get(start);
      if (changed && now - changed < FLASH_MS) {
        flashing = true;
        pen.beginPath();
        pen.arc(middle, middle, outer + 4, from, from + width);
        pen.lineWidth = 4;
        pen.globalAlpha = 1 - (now - changed) / FLASH_MS;
        pen.strokeStyle = css("--accent");
        pen.stroke();
        pen.globalAlpha = 1;
      }
      if (start === selected) {
        pen.beginPath();
        pen.arc(middle, middle, outer + 4, from, from + width);
        pen.lineWidth = 4;
        pen.strokeStyle = css("--text");
        pen.stroke();
      }
    }
    pen.fillStyle = css("--text");
    pen.textAlign = "center";
    pen.font = `600 ${Math.round(size / 14)}px ${css("--font")}`;
    pen.fillText(rate(state.summary?.arrival_per_s || 0), middle, middle);
    pen.font = `${Math.round(size / 34)}px ${css("--font")}`;
    pen.fillStyle = css("--soft");
    pen.fillText(`${number(all.length)} section${all.length === 1 ? "" : "s"}`, middle, middle + size / 17);
    if (flashing) redraw();
  }

  function redraw() {
    if (!picture) picture = requestAnimationFrame(draw);
  }

  function pick(start) {
    selected = start;
    showDetail();
    redraw();
  }

  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left - box.width / 2, y = event.clientY - box.top - box.height / 2;
    const part = ((Math.atan2(y, x) + Math.PI / 2) / (2 * Math.PI) + 1) % 1;
    const found = list().find(([start, end]) => at(start) <= part && part < at(end));
    if (found) pick(found[0]);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = list(), now = all.findIndex(([start]) => start === selected);
    if (all.length) pick(all[(now + step + all.length) % all.length][0]);
  });

  function showDetail() {
    const line = state.lines.get(selected) || list()[0];
    if (!line) return fill(detail, h("h2", {}, "Section"), h("p", { class: "empty" }, "No table yet."));
    const [start, end, epoch, members] = line;
    fill(detail,
      h("h2", {}, "Section"),
      h("p", { class: "mono" }, `${start} –`, h("br"), `${(BigInt(`0x${end}`) - 1n).toString(16).padStart(16, "0")}`),
      h("p", { class: "soft" }, `${(100 * (at(end) - at(start))).toFixed(2)} % of the space, epoch ${epoch}. `,
        "Choose another on the ring, or with the arrow keys."),
      h("ul", { class: "members" }, members.map(([name, on, suspended], place) => h("li", {},
        h("span", { class: "dot", style: { background: suspended ? css("--bad") : colour(name) } }),
        h("strong", {}, name), place ? null : h("span", { class: "tag" }, "home"),
        h("span", { class: `tag ${on ? "good" : ""}` }, suspended ? "suspended" : on ? "takes new events" : "keeps what it has")))));
  }

  function steps(move) {
    const made = move.committed_us, ended = move.ended_us, over = ["aborted", "over"].includes(move.step);
    const row = (done, title, text) => h("li", { class: done ? "done" : "" }, h("strong", {}, title), " ", text);
    return h("ol", { class: "steps" },
      row(true, "Ordered", `${clock(move.began_us)}: ${move.why || "the load monitor asked for it"}`),
      row(made || over || move.copied > 0, "Learning", `${move.helper || "the others"} learn${move.helper ? "s" : ""} ${number(move.copied)} templates${move.rows ? `, ${number(move.rows)} rows` : ""}`),
      over ? row(true, "Given up", move.reason || "nothing has changed")
        : row(Boolean(made), "Committed", made ? `after ${duration(move.seconds)}; EFs and CAs waited ${move.held_back_ms} ms, events never` : "not yet"),
      over ? null : row(Boolean(ended), "Done", ended ? `everybody knows the new line (${clock(ended)})` : "the others are being told"));
  }

  function showMoves() {
    const rows = state.moves.slice(0, 40);
    fill(moves, h("h2", {}, "Moves"),
      rows.length ? h("ul", { class: "moves" }, rows.map((move) => h("li", {},
        h("details", { open: move.id === followed, ontoggle: (event) => {
          if (event.target.open) { followed = move.id; if (state.lines.has(move.start)) pick(move.start); }
          else if (followed === move.id) followed = null;
        } },
        h("summary", {}, h("span", { class: `tag ${{ done: "good", learning: "warn", committed: "warn" }[move.step] || "bad"}` }, move.step),
          " ", move.said, h("span", { class: "soft" }, ` ${ago(move.began_us)}`)), steps(move)))))
        : h("p", { class: "empty" }, "No load has moved yet. Under load the monitor moves it by itself, or order it on the page Servers."));
  }

  function showLines() {
    const all = list();
    fill(lines, h("h2", {}, "The table"),
      table("The assignment table", ["First key", "Epoch", "Servers, home first"], all.slice(0, LISTED).map(([start, , epoch, members]) => [
        h("td", { class: "mono" }, start), epoch,
        h("td", {}, members.map(([name, on]) => h("span", { class: `tag ${on ? "good" : ""}` }, `${name} ${on ? 1 : 0}`)))]),
      "No table yet: the cluster is being founded."),
      all.length > LISTED ? h("p", { class: "soft" }, `… and ${number(all.length - LISTED)} more: utuple table`) : null);
  }

  let tabled = 0, stale = true;
  function update(parts) {
    const missing = absent();
    fill(none, missing);
    view.hidden = Boolean(missing);
    if (missing) return;
    if (parts.has("summary")) {
      const sum = state.summary;
      fill(hints, advice());
      fill(figures, stat("Events stored", number(sum.events)), stat("Arriving", rate(sum.arrival_per_s)),
        stat("EFs", number(sum.templates)), stat("Devices", number(sum.devices)),
        stat("Servers", number(state.servers.length)), stat("Moves under way", sum.under_way));
    }
    if (parts.has("servers") || parts.has("summary")) {
      fill(legend, state.servers.slice(0, 24).map((one) => h("li", {}, h("span", { class: "dot", style: { background: colour(one.name) } }), one.name)));
    }
    if (parts.has("moves")) showMoves();
    if (parts.has("lines")) {
      showDetail();
      const all = list();
      canvas.setAttribute("aria-label", `The hash space as a ring of ${all.length} sections on ${state.servers.length} servers; arrow keys choose a section`);
      stale = true;
    }
    if (stale && (performance.now() - tabled > 900 || parts.size > 9)) {
      tabled = performance.now();
      stale = false;
      showLines();
    }
    redraw();
  }
  addEventListener("resize", redraw);
  return { update, close: () => removeEventListener("resize", redraw) };
}
