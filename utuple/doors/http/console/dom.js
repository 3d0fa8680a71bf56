// Elements made of text: nothing that a device says is ever read as HTML.

export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, children);
  return element;
}

export function put(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  return put(element, children);
}

// What is drawn anew between press and release is not clicked: while something is pressed, pages stay as they are.
let pressed = false;
const held = new Set();
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => setTimeout(() => {
  pressed = false;
  const waiting = [...held];
  held.clear();
  for (const one of waiting) one();
}), true);

export function unlessPressed(draw) {
  if (pressed) held.add(draw);
  else draw();
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => (value >= 100000 ? compact : whole).format(value || 0);
export const rate = (value) => (value < 10 ? (value || 0).toFixed(1) : number(value)) + "/s";
export const percent = (value) => `${(100 * (value || 0)).toFixed(value < 0.1 ? 1 : 0)} %`;

export function bytes(value) {
  if (!value) return "0 B";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}

export function ago(us) {
  if (!us) return "–";
  return duration(Date.now() / 1000 - us / 1e6) + " ago";
}

export function duration(seconds) {
  const s = Math.max(0, seconds);
  if (s < 1) return `${Math.round(1000 * s)} ms`;
  if (s < 90) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export function clock(us) {
  return us ? new Date(us / 1000).toLocaleTimeString([], { hour12: false }) : "–";
}

export function toast(text, kind = "") {
  const box = document.getElementById("toasts");
  const one = h("p", { class: `toast ${kind}` }, text);
  box.append(one);
  setTimeout(() => one.remove(), 8000);
}

// The same colour for a server everywhere; told apart also by those who see few colours.
const HUES = [231, 172, 28, 318, 95, 200, 355, 48, 265, 140];
export function colour(name, alpha = 1) {
  const at = /(\d+)$/.exec(name);
  const n = at ? Number(at[1]) - 1 : [...name].reduce((sum, c) => sum + c.charCodeAt(0), 0);
  const hue = HUES[n % HUES.length] + 11 * Math.floor(n / HUES.length);
  const light = isDark() ? 64 : 47;
  return `hsl(${hue} 62% ${light}% / ${alpha})`;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function table(caption, heads, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: heads.length > 3 ? "many" : "" },
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, n) => {
        const made = cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell);
        made.dataset.label = heads[n]; // on a phone a row is a list
        return made;
      }))))));
}
