// Draws every plot of the page with the colours of the page, again when those change and for the printer.
(() => {
  "use strict";
  const LABEL_CHARS = 12; // of a label beside a star on a narrow page; longer ones are told where one points
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const touched = matchMedia("(pointer: coarse)").matches;
  const narrow = matchMedia("(max-width: 600px)"); // there plotly's buttons cover the legend, and long labels are cut off
  // A plan is nobody else's: without the two last, plotly offers to upload a chart to its maker.
  const settings = {
    responsive: true, displaylogo: false, scrollZoom: false,
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
    const data = themed(plot.data, "").map((trace) => narrow.matches && trace.mode === "markers+text"
      && trace.text.some((label) => label.length > LABEL_CHARS) ? { ...trace, mode: "markers" } : trace);
    const displayModeBar = touched || narrow.matches ? false : "hover";
    return Plotly.react(plot.name, data, layout, { ...settings, displayModeBar });
  }));

  narrow.addEventListener("change", () => draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => draw({ width: 700, height: 330 })); // as report.css has it
  addEventListener("afterprint", () => draw());
  draw().then(() => { document.documentElement.dataset.drawn = plots.length; });
})();
