// Orders: what would happen is shown first, then asked for once more.

import { fill, h, toast } from "./dom.js";
import { ask } from "./state.js";

export function confirmed({ title, text, fields = [], path, body, say, button, danger }) {
  const answer = h("div", { class: "dry", role: "status" });
  const inputs = fields.map((field) => field.options
    ? h("select", { name: field.name, id: `f-${field.name}` }, field.options.map(([value, label]) => h("option", { value }, label)))
    : h("input", { name: field.name, id: `f-${field.name}`, placeholder: field.placeholder || "", type: field.type || "text" }));
  const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, button);
  const box = h("dialog", { "aria-labelledby": "dialog-title" },
    h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title), h("p", {}, text),
      fields.map((field, n) => h("p", { class: field.type === "checkbox" ? "field ticked" : "field" }, h("label", { for: `f-${field.name}` }, field.label), inputs[n])),
      answer,
      h("p", { class: "buttons" }, h("button", { type: "button", class: "quiet", onclick: () => box.close() }, "Leave it"), go)));
  const asked = () => {
    const said = { ...body };
    fields.forEach((field, n) => {
      const value = inputs[n].type === "checkbox" ? inputs[n].checked : inputs[n].value;
      if (value) said[field.name] = value;
    });
    return said;
  };
  async function tryIt() {
    try {
      const would = await ask("POST", path, { ...asked(), dry_run: true });
      fill(answer, h("p", { class: "good-text" }, say(would)));
      go.disabled = false;
    } catch (error) {
      fill(answer, h("p", { class: "bad-text" }, error.message));
      go.disabled = true;
    }
  }
  for (const input of inputs) input.addEventListener("change", tryIt);
  box.addEventListener("close", () => box.remove());
  box.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const done = await ask("POST", path, asked());
      toast(`Ordered: ${say(done)}`, "good");
      box.close();
    } catch (error) {
      fill(answer, h("p", { class: "bad-text" }, error.message));
      go.disabled = false;
    }
  });
  document.body.append(box);
  box.showModal();
  tryIt();
}
