// Who looks. On a secured cluster every request shows a token; it comes in the fragment of the address (“utuple token --console”), which no
// server sees, leaves the address at once, and is kept by this tab alone. There is no cookie.

const KEPT = "utuple-token";

export function takeFromAddress() {
  const found = /^#token=([\w.-]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEPT, found[1]);
  history.replaceState(null, "", location.pathname);
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEPT));
export const signIn = (token) => sessionStorage.setItem(KEPT, token);
export const signOut = () => sessionStorage.removeItem(KEPT);

export function authorisation() {
  const token = sessionStorage.getItem(KEPT);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

// Server-sent events, as EventSource has them, but asked for with the token. `onrefused` hears an answer that is a problem, once; after a
// break it asks again by itself.
export class Events {
  constructor(url) {
    this.url = url;
    this.named = new Map();
    this.onopen = this.onmessage = this.onerror = this.onrefused = () => {};
    this.gone = new AbortController();
    this.run();
  }

  addEventListener(name, listener) { this.named.set(name, listener); }

  close() { this.gone.abort(); }

  async run() {
    await null; // whoever made it says first whom to tell
    while (!this.gone.signal.aborted) {
      try {
        const answer = await fetch(this.url, { headers: { Accept: "text/event-stream", ...authorisation() }, signal: this.gone.signal, cache: "no-store" });
        if (!answer.ok && answer.status < 500) {
          const said = await answer.json();
          if (!this.gone.signal.aborted) this.onrefused(said);
          return;
        }
        if (answer.ok) {
          this.onopen();
          await this.read(answer.body.getReader());
        }
      } catch { /* said below */ }
      if (this.gone.signal.aborted) return;
      this.onerror();
      await new Promise((done) => setTimeout(done, 1000));
    }
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.gone.signal.aborted) return;
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop();
      for (const event of events) this.hear(event);
    }
  }

  hear(text) {
    let name = "message", data = "";
    for (const line of text.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (!data) return;
    if (name === "message") this.onmessage({ data });
    else this.named.get(name)?.({ data });
  }
}
