// The search of this site runs in a worker, which browsers do not start from a folder (file:). There a hidden frame does its work:
// it loads the worker's script, and messages go to and fro as they would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((done) => this.frame.addEventListener("load", done, { once: true }));
      this.frame.srcdoc = `<script>
        postMessage = (data) => parent.postMessage({ worker: ${JSON.stringify(String(url))}, data }, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.head.append(script);
        })), Promise.resolve());
      <\/script><script src="${url}"><\/script>`;
      document.body.append(this.frame);
      this.heard = (event) => {
        if (event.data?.worker !== String(url)) return;
        const message = new MessageEvent("message", { data: event.data.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      addEventListener("message", this.heard);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      removeEventListener("message", this.heard);
      this.frame.remove();
    }
  };
}
