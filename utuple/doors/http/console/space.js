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

  // The ring is painted when it has changed, and kept: ten thousand sections are too many for every frame of a flash.
  const ring = document.createElement("canvas");
  let painted = null;

  function arcs(pen, size, [start, end, , members], gap) {
    const from = at(start) * 2 * Math.PI - Math.PI / 2, to = at(end) * 2 * Math.PI - Math.PI / 2;
    const middle = size / 2, thick = Math.max(14, size * 0.062), width = Math.max(to - from - gap, 0.0008);
    members.forEach(([name, on, suspended], place) => {
      if (place > 4) return;
      pen.beginPath();
      pen.arc(middle, middle, middle - 10 - thick / 2 - place * (thick + 4), from, from + width);
      pen.lineWidth = on ? thick : thick * 0.36;
      pen.strokeStyle = suspended ? css("--bad") : colour(name, on ? 1 : 0.55);
      pen.stroke();
    });
  }

  function outline(pen, size, [start, end], colour, alpha) {
    pen.beginPath();
    pen.arc(size / 2, size / 2, size / 2 - 6, at(start) * 2 * Math.PI - Math.PI / 2, Math.max(at(end), at(start) + 0.0002) * 2 * Math.PI - Math.PI / 2);
    pen.lineWidth = 4;
    pen.globalAlpha = alpha;
    pen.strokeStyle = colour;
    pen.stroke();
    pen.globalAlpha = 1;
  }

  function paint(size, scale) {
    ring.width = ring.height = Math.round(size * scale);
    const pen = ring.getContext("2d"), all = list(), gap = all.length > 400 ? 0 : 0.006;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    for (const line of all) arcs(pen, size, line, gap);
  }

  function draw() {
    picture = 0;
    const box = canvas.parentElement, size = Math.min(box.clientWidth, 560);
    if (!size) return;
    const scale = devicePixelRatio || 1, wanted = `${size} ${scale} ${css("--text")}`;
    if (canvas.width !== Math.round(size * scale) || canvas.height !== canvas.width) {
      canvas.width = canvas.height = Math.round(size * scale);
      canvas.style.width = canvas.style.height = `${size}px`;
    }
    if (painted?.lines !== state.lines || painted.wanted !== wanted) {
      painted = { lines: state.lines, wanted };
      paint(size, scale);
    }
    const pen = canvas.getContext("2d"), now = performance.now(), middle = size / 2;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(ring, 0, 0);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    for (const [start, changed] of state.changed) {
      const line = state.lines.get(start);
      if (!line || now - changed >= FLASH_MS) state.changed.delete(start);
      else outline(pen, size, line, css("--accent"), 1 - (now - changed) / FLASH_MS);
    }
    const shown = state.lines.get(selected) || list()[0];
    if (shown) outline(pen, size, shown, css("--text"), 1);
    pen.fillStyle = css("--text");
    pen.textAlign = "center";
    pen.font = `600 ${Math.round(size / 14)}px ${css("--font")}`;
    pen.fillText(rate(state.summary?.arrival_per_s || 0), middle, middle);
    pen.font = `${Math.round(size / 34)}px ${css("--font")}`;
    pen.fillStyle = css("--soft");
    const many = state.lines.size;
    pen.fillText(`${number(many)} section${many === 1 ? "" : "s"}`, middle, middle + size / 17);
    if (state.changed.size) redraw();
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
    const [start, end, epoch, members, axes] = line;
    fill(detail,
      h("h2", {}, "Section"),
      h("p", { class: "mono" }, `${start} –`, h("br"), `${(BigInt(`0x${end}`) - 1n).toString(16).padStart(16, "0")}`),
      h("p", { class: "soft" }, `${(100 * (at(end) - at(start))).toFixed(2)} % of the space, epoch ${epoch}. `,
        "Choose another on the ring, or with the arrow keys."),
      axes?.length ? h("p", {}, "Its EFs are partitioned by ", axes.map(([dimension, cuts], n) => [n ? " and " : "", h("code", {}, dimension), ` at ${cuts.join(", ")}`]), ".") : null,
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
      table("The assignment table", ["First key", "Epoch", "Servers, home first"], all.slice(0, LISTED).map(([start, , epoch, members, axes]) => [
        h("td", { class: "mono" }, start), epoch,
        h("td", {}, members.map(([name, on]) => h("span", { class: `tag ${on ? "good" : ""}` }, `${name} ${on ? 1 : 0}`)), axes?.length ? h("span", { class: "tag" }, `by ${axes.map(([dimension]) => dimension).join(", ")}`) : null)]),
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
