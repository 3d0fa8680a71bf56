// What the cluster is like now: one stream for the whole page, from the door's one observer.

import { unlessPressed } from "./dom.js";
import { authorisation, Events } from "./session.js";

export const state = {
  connected: false, cluster: null, summary: null, servers: [], lines: new Map(), moves: [],
  readers: null, families: [], programs: { managers: [], scas: [], monitors: [] },
  history: [], changed: new Map(),
  refused: null, // why the door does not say it, and by which status: 401 sign in, 403 for operators
};

const HISTORY = 900;
const listeners = new Set();
let waiting = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(part) {
  if (!waiting.size) requestAnimationFrame(() => unlessPressed(draw));
  waiting.add(part);
}

function draw() {
  const parts = waiting;
  waiting = new Set();
  for (const listener of listeners) listener(parts);
}

const take = {
  lines(data) {
    state.lines = new Map(data.map((line) => [line[0], line]));
  },
  patch(data) {
    const now = performance.now();
    for (const start of data.gone) state.lines.delete(start);
    for (const line of data.put) {
      state.lines.set(line[0], line);
      state.changed.set(line[0], now);
    }
    state.lines = new Map([...state.lines].sort((a, b) => (a[0] < b[0] ? -1 : 1)));
  },
  history(data) {
    state.history = data;
  },
  sample(data) {
    const last = state.history[state.history.length - 1];
    if (!last || last[0] < data[0]) state.history.push(data);
    if (state.history.length > HISTORY) state.history.shift();
  },
};

// A browser opens six connections to one address at most, and keeps pages that were left, with their streams, for a way back: pages
// that nobody sees let go of theirs, or the seventh page would wait for ever.
let source = null;

export function open() {
  const shut = () => {
    source?.close();
    source = null;
  };
  const look = () => {
    if (document.hidden) shut();
    else if (!source) connect();
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", shut);
  addEventListener("pageshow", look);
  look();
}

// With another token.
export function reopen() {
  source?.close();
  state.refused = null;
  connect();
}

function refuse(said) {
  state.connected = false;
  state.refused = { status: said.status, detail: said.detail };
  tell("refused");
}

function connect() {
  const parts = ["cluster", "summary", "servers", "lines", "patch", "moves", "readers", "families",
    "programs", "history", "sample"];
  source = new Events("/v1/status/live");
  for (const part of parts) {
    source.addEventListener(part, (event) => {
      const data = JSON.parse(event.data);
      if (take[part]) take[part](data);
      else state[part] = data;
      tell(part === "patch" ? "lines" : part);
    });
  }
  source.onopen = () => { state.connected = true; state.refused = null; tell("connected"); };
  source.onerror = () => { state.connected = false; tell("connected"); };
  source.onrefused = refuse;
}

export async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...authorisation() },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error("the door does not answer: is the cluster running? Start it with “utuple up”");
  }
  const kind = answer.headers.get("Content-Type") || "";
  const said = kind.includes("json") ? await answer.json() : await answer.text();
  if (answer.status === 401) refuse(said);
  if (!answer.ok) throw new Error(said.detail || said.title || String(said));
  return said;
}
