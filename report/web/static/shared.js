// What both pages share: figures, colours, and charts that follow the theme and the width.
"use strict";
const Z = (() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const narrow = () => innerWidth < 560;

  // el makes an element: attributes, then children (text or elements).
  function el(tag, attrs, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (k === "style") for (const [p, x] of Object.entries(v)) e.style.setProperty(p, x);
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined));
    return e;
  }

  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  function bytes(n, digits = 2) {
    if (n === null || n === undefined || Number.isNaN(n)) return "–";
    let u = 0, v = Math.abs(n);
    while (v >= 1024 && u < units.length - 1) { v /= 1024; u++; }
    const text = u === 0 || Number.isInteger(v) ? String(Math.round(v)) : v.toFixed(v >= 100 ? Math.min(digits, 1) : digits);
    return (n < 0 ? "−" : "") + text + " " + units[u];
  }
  const whole = (n) => n.toLocaleString("en-US");
  function ms(v) {
    if (v === 0) return "0";
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    if (v >= 10000) return (v / 1000).toFixed(1) + " s";
    if (v >= 1000) return (v / 1000).toFixed(2) + " s";
    if (v >= 100) return v.toFixed(0) + " ms";
    if (v >= 1) return v.toFixed(1) + " ms";
    return (v * 1000).toFixed(0) + " µs";
  }
  // percent keeps what is not all from reading as 100 %.
  function percent(part, all) {
    if (!(all > 0)) return "–";
    const v = (100 * part) / all;
    return (v < 9.95 || (v >= 99 && part < all) ? (Math.floor(v * 10) / 10).toFixed(1) : v.toFixed(0)) + " %";
  }
  // figure shows a number of unknown size: 3.412, 2.9e-4.
  function figure(v, digits = 4) {
    if (v === null || v === undefined) return "–";
    if (!Number.isFinite(v)) return String(v);
    const a = Math.abs(v);
    return a !== 0 && (a < 1e-3 || a >= 1e6) ? v.toExponential(2) : String(Number(v.toPrecision(digits)));
  }

  // lone reports whether a series has one value at most that can be drawn: no line leads through it, so it needs a point.
  const lone = (values) => values.filter((v) => v !== null && v !== undefined).length < 2;

  // Powers of two, so that ticks are whole MiB.
  const byteSteps = Array.from({ length: 51 }, (_, i) => 2 ** i);
  const byteAxis = (extra) => axis({ incrs: byteSteps, values: (_, v) => v.map((x) => bytes(x)), size: 68, ...extra });
  function axis(extra) {
    return { stroke: css("soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18, labelGap: 2,
      grid: { stroke: css("grid"), width: 1 }, ticks: { stroke: css("line"), width: 1, size: 5 }, ...extra };
  }

  // charts are drawn again when the theme or the width changes: make returns uPlot's options and data for a width.
  const charts = new Set();
  function chart(box, make) {
    const c = { box, make, plot: null };
    c.draw = () => {
      const keep = c.plot && c.zoomed ? [c.plot.scales.x.min, c.plot.scales.x.max] : null;
      if (c.plot) c.plot.destroy();
      const { opts, data } = make(box.clientWidth);
      c.plot = new uPlot({ width: box.clientWidth, legend: { show: false }, ...opts }, data, box);
      if (keep) c.plot.setScale("x", { min: keep[0], max: keep[1] });
    };
    c.reset = () => { c.zoomed = false; const x = c.plot.data[0]; c.plot.setScale("x", { min: x[0], max: x[x.length - 1] }); };
    charts.add(c);
    c.draw();
    return c;
  }
  let width = innerWidth, timer = 0;
  const redraw = () => charts.forEach((c) => c.draw());
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 80);
  });
  dark.addEventListener("change", () => { redraw(); themed.forEach((f) => f()); });
  const themed = new Set();

  function tile(name, value, note) {
    return el("div", { class: "tile" }, el("span", {}, name), el("strong", {}, value), el("small", {}, note || ""));
  }
  // table is a table that scrolls by itself where the screen is narrow: columns are {name, num}; cells are text or elements.
  function table(label, caption, columns, rows, sums) {
    const cls = (i) => (columns[i].num ? { class: "num" } : {});
    const line = (row, attrs) => el("tr", attrs, ...row.map((c, i) => el("td", cls(i), c)));
    return el("div", {}, caption ? el("p", { class: "soft" }, caption) : null, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((c, i) => el("th", { scope: "col", ...cls(i) }, c.name)))),
        el("tbody", {}, ...rows.map((r) => line(r, {})), ...(sums || []).map((r) => line(r, { class: "sum" }))))));
  }
  const chip = (color) => el("i", { class: "chip", style: { background: color } });
  // stackBar shows parts as shares of a whole.
  function stackBar(parts, label) {
    const all = parts.reduce((s, p) => s + p.value, 0) || 1;
    return el("div", { class: "stack", role: "img", "aria-label": label },
      ...parts.map((p) => el("i", { style: { width: (100 * p.value) / all + "%", background: p.color }, title: p.name })));
  }
  return { dark, css, narrow, el, bytes, whole, ms, percent, figure, lone, axis, byteAxis, chart, redraw, themed, tile, table, chip, stackBar };
})();
