// Plan: how many servers to buy, and when. Simulations run beside the door, one at a time.

import { fill, h, number, unlessPressed } from "./dom.js";
import { ask } from "./state.js";

const NAMES = { sweep: "Scenario", forecast: "Forecast of this cluster", paper: "The paper's 1000 days" };

export function plan(main) {
  const runs = h("section", { class: "card", "aria-label": "Runs" });
  const text = h("textarea", { id: "scenario", rows: "14", spellcheck: "false", class: "mono" });
  const file = h("input", { type: "file", id: "file", accept: ".toml,text/plain" });
  const refused = h("p", { class: "bad-text", role: "alert" });
  let timer = 0;
  file.addEventListener("change", async () => { if (file.files[0]) text.value = await file.files[0].text(); });

  async function begin(kind) {
    try {
      await ask("POST", "/v1/plan/runs", kind === "sweep" ? { kind, scenario: text.value } : { kind });
      look();
      fill(refused);
    } catch (error) { fill(refused, error.message); }
  }

  async function look() {
    clearTimeout(timer);
    try {
      const found = (await ask("GET", "/v1/plan/runs")).runs;
      unlessPressed(() => fill(runs, h("h2", {}, "Runs"), found.length ? found.map((run) => h("article", { class: "run" },
        h("h3", {}, NAMES[run.kind], " ", h("span", { class: `tag ${{ done: "good", running: "warn" }[run.state] || "bad"}` }, run.state)),
        run.state === "running" ? [h("progress", { "aria-label": "Running", ...(run.total ? { max: run.total, value: run.done } : {}) }),
          h("p", { class: "soft", role: "status" }, run.total ? `${number(run.done)} of ${number(run.total)} worlds` : "It begins …")] : null,
        run.said ? h("pre", { tabindex: "0", role: "region", "aria-label": "What it says" }, run.said) : null,
        h("p", { class: "buttons" },
          run.report ? h("a", { class: "button", href: run.opened || run.report, target: "_blank", rel: "noopener" }, "Open the report") : null,
          run.state === "running" ? h("button", { type: "button", class: "quiet", onclick: async () => { await ask("DELETE", `/v1/plan/runs/${run.id}`); look(); } }, "Cancel") : null)))
        : h("p", { class: "empty" }, "Nothing was simulated yet. The paper's 1000 days are a good beginning: they take half a minute.")));
      if (found.some((run) => run.state === "running")) timer = setTimeout(look, 1000);
    } catch (error) { fill(runs, h("h2", {}, "Runs"), h("p", { class: "bad-text" }, error.message)); timer = setTimeout(look, 3000); }
  }

  main.append(
    h("h1", {}, "Plan"),
    h("div", { class: "columns even" },
      h("section", { class: "card" }, h("h2", {}, "When are servers full?"),
        h("p", {}, "The forecast reads what the load monitor has recorded (", h("code", { class: "short" }, "utuple up --telemetry DIR"), ") and says on which day each server is full, and how many to order by when."),
        h("p", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => begin("forecast") }, "Forecast"),
          h("button", { type: "button", class: "quiet", onclick: () => begin("paper") }, "The paper's 1000 days"))),
      h("section", { class: "card" }, h("h2", {}, "A scenario"),
        h("p", {}, "Growth, policies, prices: every key is explained in the template. A sweep tries thousands of possible worlds and recommends a policy."),
        h("p", { class: "field" }, h("label", { for: "file" }, "From a file"), file),
        h("p", { class: "field" }, h("label", { for: "scenario" }, "Scenario (TOML)"), text),
        h("p", { class: "buttons" }, h("button", { type: "button", class: "quiet", onclick: async () => { text.value = await ask("GET", "/v1/plan/template"); } }, "Begin with the template"),
          h("button", { type: "button", class: "primary", onclick: () => begin("sweep") }, "Run the sweep")))),
    refused, runs);
  look();
  return { update: () => {}, close: () => clearTimeout(timer) };
}
