// What is shown to who is not known here, or not any longer.

import { h } from "./dom.js";
import { hasToken, signIn } from "./session.js";

export function signInCard(why, signedIn) {
  const token = h("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": "how" });
  const form = h("form", {},
    h("p", { class: "field" }, h("label", { for: "token" }, "Token"), token),
    h("p", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Sign in")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(token.value.trim());
    signedIn();
  });
  return h("section", { class: "card empty-card" },
    h("h1", {}, "Sign in"),
    h("p", { role: hasToken() ? "alert" : null }, hasToken() ? `${why[0].toUpperCase()}${why.slice(1)}.` : "This cluster is secured: it must know who you are."),
    h("p", { id: "how" }, "Sign in with ", h("code", {}, "utuple token --console"), " on the machine of the cluster, which prints an address to open, or paste a token that ",
      h("code", {}, "utuple token --credentials NAME.creds"), " made."),
    form);
}

export function forOperators(why) {
  return h("section", { class: "card empty-card" }, h("h2", {}, "For operators"), h("p", {}, `${why}.`),
    h("p", {}, "What you were granted is on the ", h("a", { href: "#map" }, "map"), "."));
}
