// The map: stored matches, then live ones; an area drawn or typed; commands to it, and which devices got them.

import { css, fill, h, number, toast } from "./dom.js";
import { Events } from "./session.js";
import { ask, state } from "./state.js";

const KEPT = 5000;
const NEW_MS = 3000;
const LISTED = 200;
const METRES = 6371008.8; // the radius of the earth
let world = null;

async function countries() {
  if (!world) {
    const topology = await (await fetch("/console/vendor/countries-110m.json")).json();
    world = { land: topojson.feature(topology, topology.objects.countries), borders: topojson.mesh(topology, topology.objects.countries, (a, b) => a !== b) };
  }
  return world;
}

export function map(main) {
  let source = null, points = [], view = null, mode = "pan", drawn = null, drag = null, picture = 0, geography = null, fitted = false;
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of recent events; plus and minus zoom, arrow keys move. While an area is drawn, Enter puts one in the middle, arrow keys move it, plus and minus change its size, Escape takes it away" });
  const field = (name, label, props) => h("p", { class: "field" }, h("label", { for: `m-${name}` }, label), h("input", { id: `m-${name}`, name, autocomplete: "off", ...props }));
  const kept = JSON.parse(sessionStorage.getItem("family") || "null"); // by a link of the page Families
  const chosen = kept || (state.families[0] ? [state.families[0].subject, state.families[0].type] : ["truck", "load"]);
  const subject = field("subject", "Subject", { value: chosen[0], required: true, list: "subjects" });
  const type = field("type", "Type", { value: chosen[1], required: true, list: "types" });
  const where = field("where", "Conditions", { placeholder: "kg>=1000; state in idle,busy" });
  const since = field("since", "Since", { value: "1h", placeholder: "1h, or 2026-01-31T08:00:00Z" });
  const area = field("area", "Area", { placeholder: "lat,lon,2km or south,west,north,east" });
  const said = h("p", { class: "soft", role: "status" }, "Nothing is watched yet.");
  const ends = h("button", { class: "quiet", type: "button", hidden: true, onclick: () => stop() }, "Stop");
  const newest = h("ul", { class: "newest" });
  const receipt = h("div", { role: "status" });
  const value = (of) => of.querySelector("input").value.trim();
  const subjects = h("datalist", { id: "subjects" }), types = h("datalist", { id: "types" });
  const tools = h("div", { class: "tools", role: "group", "aria-label": "Map tools" },
    [["pan", "Move"], ["box", "Draw a box"], ["circle", "Draw a circle"]].map(([name, label]) =>
      h("button", { type: "button", "aria-pressed": String(name === mode), onclick: (event) => {
        mode = name;
        for (const one of tools.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", one === event.currentTarget);
        canvas.style.cursor = name === "pan" ? "grab" : "crosshair";
      } }, label)),
    h("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoom(1.5) }, "+"),
    h("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoom(1 / 1.5) }, "−"),
    h("button", { type: "button", onclick: () => { fit(); redraw(); } }, "All events"),
    h("button", { type: "button", onclick: () => settle(null) }, "No area"));
  const form = h("form", { class: "asks" }, subject, type, where, since, area, h("p", { class: "buttons" }, h("button", { class: "primary", type: "submit" }, "Watch"), ends), subjects, types);
  const commandData = h("textarea", { id: "c-data", rows: "2", class: "mono", spellcheck: "false" }, "{\"on\": false}");
  const commandType = h("input", { id: "c-type", placeholder: "power", autocomplete: "off" }), commandSubject = h("input", { id: "c-subject", placeholder: "aircon", autocomplete: "off" });
  const commandForm = h("form", {},
    h("p", { class: "field" }, h("label", { for: "c-subject" }, "Subject"), commandSubject),
    h("p", { class: "field" }, h("label", { for: "c-type" }, "Type"), commandType),
    h("p", { class: "field" }, h("label", { for: "c-data" }, "Data (JSON)"), commandData),
    h("p", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Send to the area")), receipt);
  main.append(h("h1", {}, "Map"),
    h("div", { class: "columns maps" },
      h("section", { class: "card map", "aria-label": "Map" }, tools, h("div", { class: "canvas-box map-box" }, canvas), said),
      h("div", { class: "stack" },
        h("section", { class: "card", "aria-label": "What to watch" }, h("h2", {}, "Watch"), form),
        h("section", { class: "card", "aria-label": "Command" }, h("h2", {}, "Command devices here"), commandForm))),
    h("section", { class: "card", "aria-label": "Newest events" }, h("h2", {}, "Newest"), newest));

  // --- the picture

  const size = () => [canvas.clientWidth, canvas.clientHeight];
  function projection() {
    const [width, height] = size();
    if (!view) view = { centre: [10, 25], scale: width / 6.3 };
    return d3.geoMercator().center(view.centre).scale(view.scale).translate([width / 2, height / 2]);
  }
  function draw() {
    picture = 0;
    const [width, height] = size(), scale = devicePixelRatio || 1;
    if (!width || !geography) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d"), flat = projection(), path = d3.geoPath(flat, pen), now = performance.now();
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = css("--sea");
    pen.fillRect(0, 0, width, height);
    pen.beginPath(); path(geography.land); pen.fillStyle = css("--land"); pen.fill();
    pen.beginPath(); path(geography.borders); pen.strokeStyle = css("--sea"); pen.lineWidth = 0.7; pen.stroke();
    pen.beginPath(); path(graticule()); pen.strokeStyle = css("--grid"); pen.lineWidth = 0.5; pen.stroke();
    let fresh = false;
    for (const point of points) {
      const place = flat([point.position[1], point.position[0]]);
      if (!place) continue;
      const age = now - point.came;
      pen.beginPath();
      pen.arc(place[0], place[1], point.stored ? 3 : 4, 0, 7);
      pen.fillStyle = point.stored ? css("--dot-stored") : css("--dot-live");
      pen.globalAlpha = point.stored ? 0.55 : 0.85;
      pen.fill();
      if (!point.stored && age < NEW_MS) {
        fresh = true;
        pen.beginPath();
        pen.arc(place[0], place[1], 4 + (14 * age) / NEW_MS, 0, 7);
        pen.globalAlpha = 0.6 * (1 - age / NEW_MS);
        pen.strokeStyle = css("--dot-live");
        pen.lineWidth = 2;
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    const shape = drawn && geo(drawn);
    if (shape) { // seen above any number of dots
      pen.beginPath(); path(shape);
      pen.fillStyle = css("--area"); pen.fill();
      pen.strokeStyle = css("--card"); pen.lineWidth = 4; pen.stroke();
      pen.strokeStyle = css("--text"); pen.lineWidth = 2; pen.stroke();
    }
    if (fresh) redraw();
  }
  function graticule() { // about six lines across, whatever the zoom
    const wide = (360 * size()[0]) / (2 * Math.PI * view.scale), step = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01].find((one) => wide / one >= 4) || 0.005;
    const [lon, lat] = view.centre, reach = Math.min(170, wide);
    return d3.geoGraticule().step([step, step]).extent([[Math.floor((lon - reach) / step) * step, Math.max(-80, Math.floor((lat - reach) / step) * step)], [Math.ceil((lon + reach) / step) * step, Math.min(80.001, Math.ceil((lat + reach) / step) * step)]])();
  }
  const redraw = () => { if (!picture) picture = requestAnimationFrame(draw); };
  const eastOf = (of) => (of.east < of.west ? of.east + 360 : of.east); // a box may lie across the date line
  function geo(of) {
    if (of.radius !== undefined) return d3.geoCircle().center([of.lon, of.lat]).radius((of.radius / METRES) * (180 / Math.PI))();
    const { south, west, north } = of, east = eastOf(of), ring = [];
    for (let k = 0; k <= 16; k++) ring.push([west + ((east - west) * k) / 16, north]);
    for (let k = 0; k <= 16; k++) ring.push([east - ((east - west) * k) / 16, south]);
    ring.push(ring[0]);
    return { type: "LineString", coordinates: ring };
  }
  function zoom(by) { projection(); view.scale = Math.max(40, Math.min(4e6, view.scale * by)); redraw(); }
  function fit() {
    if (!points.length) { view = null; return; }
    const [width, height] = size();
    const lats = points.map((one) => one.position[0]), lons = points.map((one) => one.position[1]);
    const box = { type: "MultiPoint", coordinates: [[Math.min(...lons), Math.min(...lats)], [Math.max(...lons), Math.max(...lats)]] };
    view = { centre: [(box.coordinates[0][0] + box.coordinates[1][0]) / 2, (box.coordinates[0][1] + box.coordinates[1][1]) / 2], scale: 1000 };
    const wide = Math.max(1e-4, box.coordinates[1][0] - box.coordinates[0][0]), tall = Math.max(1e-4, box.coordinates[1][1] - box.coordinates[0][1]);
    view.scale = Math.min(2e6, 0.75 * Math.min(width / ((wide * Math.PI) / 180), height / ((tall * Math.PI) / 140)));
    view.scale = Math.max(view.scale, width / 6.3);
  }
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); drag = { from: placeOf(event), centre: view && [...view.centre], flat: projection() }; });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const to = placeOf(event);
    if (mode === "pan") {
      const [width, height] = size();
      view.centre = drag.flat.invert([width / 2 - (to[0] - drag.from[0]), height / 2 - (to[1] - drag.from[1])]);
    } else {
      const a = drag.flat.invert(drag.from), b = drag.flat.invert(to);
      settle(mode === "box"
        ? { south: Math.min(a[1], b[1]), north: Math.max(a[1], b[1]), west: Math.min(a[0], b[0]), east: Math.max(a[0], b[0]) }
        : { lat: a[1], lon: a[0], radius: Math.max(1, d3.geoDistance(a, b) * METRES) });
    }
    redraw();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.25 : 0.8); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    projection();
    const step = (60 / view.scale) * 57, drawing = mode !== "pan";
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    const by = { "+": 1.5, "-": 1 / 1.5 }[event.key];
    if (moves && drawing && drawn) settle(moved(drawn, moves[0] / 3, moves[1] / 3));
    else if (moves) view.centre = [view.centre[0] + moves[0], Math.max(-80, Math.min(80, view.centre[1] + moves[1]))];
    else if (by && drawing && drawn) settle(sized(drawn, by > 1 ? 1.25 : 0.8));
    else if (by) zoom(by);
    else if (event.key === "Enter" && drawing) settle(inTheMiddle());
    else if (event.key === "Escape" && drawing) settle(null);
    else return;
    event.preventDefault();
    redraw();
  });

  // --- an area, as it is drawn and as it is written

  function settle(area_) {
    drawn = area_;
    area.querySelector("input").value = drawn ? worded(drawn) : "";
    redraw();
  }
  function inTheMiddle() { // a quarter of what is seen
    const [lon, lat] = view.centre, reach = (Math.min(...size()) / 4 / view.scale) * 57.3;
    return mode === "box" ? { south: lat - reach * 0.7, north: lat + reach * 0.7, west: lon - reach, east: lon + reach }
      : { lat, lon, radius: (reach / 57.3) * METRES * Math.cos(lat / 57.3) };
  }
  const lat = (of) => Math.max(-90, Math.min(90, of)), lon = (of) => ((((of + 180) % 360) + 360) % 360) - 180;
  const moved = (of, right, up) => (of.radius !== undefined ? { ...of, lat: lat(of.lat + up), lon: lon(of.lon + right) }
    : { south: lat(of.south + up), north: lat(of.north + up), west: lon(of.west + right), east: lon(of.east + right) });
  function sized(of, by) {
    if (of.radius !== undefined) return { ...of, radius: of.radius * by };
    const wide = eastOf(of) - of.west, tall = of.north - of.south, more = (by - 1) / 2;
    if (wide * by >= 360) return of;
    return { south: lat(of.south - tall * more), north: lat(of.north + tall * more), west: lon(of.west - wide * more), east: lon(of.west + wide + wide * more) };
  }
  const worded = (of) => (of.radius !== undefined ? `${of.lat.toFixed(5)},${of.lon.toFixed(5)},${Math.round(of.radius)}m` : [of.south, of.west, of.north, of.east].map((one) => one.toFixed(5)).join(","));
  area.querySelector("input").addEventListener("change", () => {
    const parts = value(area).split(",").map((one) => one.trim());
    if (parts.length === 3) drawn = { lat: Number(parts[0]), lon: Number(parts[1]), radius: parseFloat(parts[2]) * (parts[2].endsWith("km") ? 1000 : 1) };
    else if (parts.length === 4) drawn = { south: Number(parts[0]), west: Number(parts[1]), north: Number(parts[2]), east: Number(parts[3]) };
    else drawn = null;
    redraw();
  });

  // --- stored, then live

  let stored = 0, live = 0, nowhere = 0, pending = 0, asked = false;
  function tell() {
    pending = 0;
    fill(said, `${number(stored)} stored and ${number(live)} live matches`, points.length >= KEPT ? `, the newest ${number(KEPT)} shown` : "",
      nowhere ? `, ${number(nowhere)} of them without a position` : "", ".");
    fill(newest, points.slice(-8).reverse().map((one) => h("li", {}, h("strong", {}, one.address), " ",
      h("span", { class: "mono" }, JSON.stringify(one.data).slice(0, 120)), " ", h("span", { class: "soft" }, `${one.stored ? "stored" : "live"}, ${new Date(one.time).toLocaleTimeString([], { hour12: false })}`))));
    if (!newest.childElementCount) fill(newest, h("li", { class: "empty" }, "No match with a position yet."));
  }
  function stop() {
    source?.close();
    source = null;
    clearTimeout(pending); // what came before would be told in place of why this one was refused
    pending = 0;
    ends.hidden = true;
  }
  function watch() {
    stop();
    asked = true;
    points = []; stored = live = nowhere = 0; fitted = false;
    const query = new URLSearchParams({ subject: value(subject), type: value(type) });
    for (const one of value(where).split(";")) if (one.trim()) query.append("where", one.trim());
    if (value(since)) query.set("since", value(since));
    if (value(area)) query.set("area", value(area));
    const url = `/v1/events/live?${query}`;
    ends.hidden = false;
    fill(said, "Waiting for matches …");
    fill(newest, h("li", { class: "empty" }, "No match with a position yet."));
    source = new Events(url);
    source.onrefused = (problem) => { fill(said, h("span", { class: "bad-text" }, problem.detail)); stop(); };
    source.onopen = () => { points = []; stored = live = nowhere = 0; }; // also after a break: it begins again with what is stored
    source.onmessage = (message) => {
      const one = JSON.parse(message.data);
      if (one.stored) stored++; else live++;
      if (one.position) {
        points.push({ ...one, came: performance.now() });
        if (points.length > KEPT) points.shift();
        if (!fitted) { fitted = true; setTimeout(() => { fit(); redraw(); }, 300); }
      }
      else nowhere++;
      redraw();
      if (!pending) pending = setTimeout(tell, 250);
    };
    source.addEventListener("problem", (message) => { fill(said, h("span", { class: "bad-text" }, JSON.parse(message.data).detail)); stop(); });
    source.onerror = () => fill(said, h("span", { class: "bad-text" }, "The stream is broken; trying again …"));
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); watch(); });

  // Who comes sees something: what he has chosen, or the busiest family, about as much of it as is drawn.
  const begun = [value(subject), value(type), value(since)].join();
  function watchTheBusiest() {
    const first = kept ? state.families.find((one) => one.subject === kept[0] && one.type === kept[1]) || { subject: kept[0], type: kept[1], arrival_per_s: 0 } : state.families[0];
    if (asked || !first || [value(subject), value(type), value(since)].join() !== begun) return;
    subject.querySelector("input").value = first.subject;
    type.querySelector("input").value = first.type;
    const seconds = Math.min(3600, Math.max(60, Math.round(KEPT / Math.max(0.1, first.arrival_per_s))));
    since.querySelector("input").value = seconds === 3600 ? "1h" : `${seconds}s`;
    watch();
  }

  commandForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    let data;
    try { data = JSON.parse(commandData.value); } catch (error) { fill(receipt, h("p", { class: "bad-text" }, `Data: ${error.message}`)); return; }
    const place = value(area);
    const body = { subject: commandSubject.value.trim(), type: commandType.value.trim(), data };
    if (place) body.area = place;
    else if (confirm("No area is drawn: send it to every device of this subject and type?")) body.everywhere = true;
    else return;
    try {
      const got = await ask("POST", "/v1/commands", body);
      fill(receipt, h("p", { class: got.handed_over ? "good-text" : "bad-text" }, got.said),
        h("ul", { class: "members" }, got.devices.slice(0, LISTED).map((one) => h("li", {}, h("strong", {}, one.address), h("span", { class: `tag ${one.handed_over ? "good" : "bad"}` }, one.handed_over ? "has it" : one.reason)))),
        got.devices.length > LISTED ? h("p", { class: "soft" }, `… and ${number(got.devices.length - LISTED)} more`) : null);
    } catch (error) { fill(receipt, h("p", { class: "bad-text" }, error.message)); }
  });

  addEventListener("pagehide", stop); // a page that is kept for a way back must not keep its connection
  countries().then((found) => { geography = found; redraw(); }, (error) => toast(`No map: ${error.message}`, "bad"));
  addEventListener("resize", redraw);
  fill(newest, h("li", { class: "empty" }, "What matches is listed here, the newest first."));
  return {
    update(parts) {
      if (parts.size > 9) redraw();
      if (!parts.has("families")) return;
      watchTheBusiest();
      fill(subjects, [...new Set(state.families.map((one) => one.subject))].map((one) => h("option", { value: one })));
      fill(types, [...new Set(state.families.map((one) => one.type))].map((one) => h("option", { value: one })));
    },
    close() { stop(); clearTimeout(pending); removeEventListener("resize", redraw); removeEventListener("pagehide", stop); },
  };
}
