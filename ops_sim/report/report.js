// Draws every plot of the page with the colours of the page, again when those change and for the printer.
(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const touched = matchMedia("(pointer: coarse)").matches;
  // A plan is nobody else's: without the two last, plotly offers to upload a chart to its maker.
  const settings = {
    responsive: true, displaylogo: false, scrollZoom: false, displayModeBar: touched ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    showSendToCloud: false, plotlyServerURL: "",
  };

  const colour = (name) => {
    const [variable, share] = name.split("@");
    const hex = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
    if (!share) return hex;
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r},${g},${b},${share})`;
  };
  // Labels come from data: only what says a colour is looked at, never a name or a text.
  const themed = (value, key) => {
    if (Array.isArray(value)) return value.map((part) => themed(part, key));
    if (value !== null && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, themed(part, name)]));
    return /color$/.test(key) && String(value).startsWith("--") ? colour(value) : value;
  };

  const draw = (size) => Promise.all(plots.map((plot) => {
    const layout = themed(plot.layout, "");
    if (touched) layout.dragmode = false; // a finger on a plot scrolls the page
    if (size) Object.assign(layout, size, { autosize: false });
    return Plotly.react(plot.name, themed(plot.data, ""), layout, settings);
  }));

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => draw({ width: 700, height: 330 })); // as report.css has it
  addEventListener("afterprint", () => draw());
  draw().then(() => { document.documentElement.dataset.drawn = plots.length; });
})();
