// The memory report: draws what memory.json holds.
"use strict";
(() => {
  const d = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const { el, bytes, ms, percent, whole, css } = Z;
  const color = (kind) => { const k = d.kinds.find((k) => k.name === kind); return k ? (Z.dark.matches ? k.dark : k.light) : css("wait"); };
  const words = (name) => name.replaceAll("_", " ");
  const parts = [["compute", "compute_ms"], ["communication", "comm_ms"], ["I/O", "io_ms"], ["wait", "wait_ms"]];
  const partColor = { compute: "compute", communication: "comm", "I/O": "io", wait: "wait" };
  const phaseNames = ["forward", "backward", "update"];
  const hidden = new Set();
  let rank = 0;

  // Steps stand side by side: what lies between two (a validation, a report) is cut out.
  const shift = [];
  let at = 0;
  for (const s of d.steps) {
    shift.push(at - s.start);
    at += (s.end - s.start) * 1.01;
  }
  const place = (step, ns) => (ns + shift[step]) / 1e6;
  const back = (x) => { // position → step and time within
    let k = 0;
    while (k + 1 < d.steps.length && place(k + 1, d.steps[k + 1].start) <= x) k++;
    return { step: k, ns: x * 1e6 - shift[k] };
  };

  function head() {
    $("facts").append(...d.facts.map((f) => el("li", {}, f.name + " ", el("b", {}, f.value))));
    const most = d.ranks.reduce((m, r) => (r.used_peak > m.used_peak ? r : m), d.ranks[0]);
    const top = d.ranks.reduce((m, r) => (r.peak.bytes > m.peak.bytes ? r : m), d.ranks[0]);
    const span = d.steps.reduce((s, x) => s + x.end - x.start, 0) / Math.max(1, d.steps.length) / 1e6;
    const exposed = d.ranks.reduce((s, r) => s + r.split.comm_ms + r.split.io_ms + r.split.wait_ms, 0) / d.ranks.length;
    const some = d.steps.length > 0, counted = most.used_peak > 0;
    $("tiles").append(
      Z.tile("Used peak of a rank", counted ? bytes(most.used_peak) : "–", !counted ? "not counted" : most.used_peak === most.planned_peak ? "equal to the plan" : "planned " + bytes(most.planned_peak)),
      Z.tile("In use at once", some ? bytes(top.peak.bytes) : "–", counted && some ? percent(top.peak.bytes, top.used_peak) + " of what is reserved" : ""),
      Z.tile("Limit of a rank", d.limit ? bytes(d.limit) : "none", d.limit ? (counted ? bytes(d.limit - most.used_peak) + " free" : "")  : "--device-memory sets one"),
      Z.tile("Process", d.process.resident ? bytes(d.process.resident) : "–", "resident; arenas " + bytes(d.arenas)),
      Z.tile("Step", some ? ms(span) : "–", some ? "mean of steps " + d.steps[0].step + " to " + d.steps[d.steps.length - 1].step : "no step was recorded"),
      Z.tile("Not overlapped", percent(exposed, span), "communication, I/O, waiting"));
    $("footer").textContent = "Plan " + d.plan.sha256 + ". Colours and categories are those of PyTorch's memory profiler.";
  }

  // Rows of the memory chart: time, then kinds from the top of the stack to its bottom, each with all below it added; then lines.
  function columns() {
    const r = d.ranks[rank], names = d.kinds.map((k) => k.name).filter((n) => r.curves.some((c) => c.kind[n]) && !hidden.has(n));
    const x = [], plan = [], own = names.map(() => []);
    r.curves.forEach((c, s) => {
      if (s) { x.push(place(s, c.ns[0]) - 1e-6); plan.push(null); own.forEach((o) => o.push(null)); }
      c.ns.forEach((t, i) => {
        x.push(place(s, t));
        plan.push(c.plan[i]);
        names.forEach((n, k) => own[k].push(c.kind[n] ? c.kind[n][i] : 0));
      });
    });
    const sums = [];
    own.forEach((o, k) => sums.push(o.map((v, i) => (v === null ? null : v + (k ? sums[k - 1][i] : 0)))));
    return { x, plan, own, names, sums };
  }

  let cols = columns();
  function memoryOptions(width) {
    cols = columns();
    const r = d.ranks[rank], stepped = uPlot.paths.stepped({ align: 1 });
    const flat = (v) => cols.x.map(() => v);
    const drawn = r.planned_peak || r.peak.bytes, limit = d.limit && d.limit < 2.5 * drawn ? d.limit : 0;
    const line = (name, stroke, dash, w) => ({ label: name, stroke, dash, width: w, points: { show: false } });
    const kinds = [...cols.names].reverse();
    const series = [{}, ...kinds.map((n) => ({ label: n, stroke: color(n), fill: color(n), width: 0, paths: stepped, points: { show: false } })),
      { ...line("plan", css("text"), [5, 4], 1.25), paths: stepped }, line("reserved", css("soft"), undefined, 1.5)];
    const data = [cols.x, ...[...cols.sums].reverse(), cols.plan, flat(drawn)];
    if (limit) { series.push(line("limit", css("limit"), undefined, 1.5)); data.push(flat(limit)); }
    return { data, opts: {
      height: Z.narrow() ? 240 : 320, series, cursor: { sync: { key: "t", scales: ["x", null] }, points: { show: false }, y: false, drag: { x: true, y: false } },
      padding: [20, 8, 0, 0],
      scales: { x: { time: false }, y: { range: [0, Math.max(drawn, limit) * 1.06] } },
      axes: [Z.axis({ values: (_, v) => v.map(() => ""), size: 8 }), Z.byteAxis()],
      hooks: { setCursor: [(u) => readout(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null)], setScale: [(u, k) => { if (k === "x") zoomed(u); }], draw: [stepLines] },
    } };
  }
  function zoomed(u) {
    const x = u.data[0], is = x.length && (u.scales.x.min > x[0] || u.scales.x.max < x[x.length - 1]);
    for (const c of [memory, lanes]) if (c) c.zoomed = is;
    $("all").disabled = !is;
  }
  // stepLines parts the steps and names them.
  function stepLines(u) {
    const c = u.ctx, dpr = devicePixelRatio;
    c.save();
    c.font = 12 * dpr + "px system-ui, sans-serif";
    c.textBaseline = "bottom";
    c.textAlign = "left";
    d.steps.forEach((s, k) => {
      const x0 = u.valToPos(place(k, s.start), "x", true), x1 = u.valToPos(place(k, s.end), "x", true);
      const left = Math.max(x0, u.bbox.left), right = Math.min(x1, u.bbox.left + u.bbox.width);
      if (right <= left) return;
      c.fillStyle = css("ground");
      if (k) c.fillRect(x0 - (x1 - x0) * 0.01, u.bbox.top, (x1 - x0) * 0.01, u.bbox.height);
      const text = "step " + s.step;
      if (right - left > c.measureText(text).width + 12 * dpr) {
        c.fillStyle = css("text");
        c.fillText(text, left + 2 * dpr, u.bbox.top - 3 * dpr);
      }
    });
    c.restore();
  }

  // The lanes: a row for the phases, and one for each lane with a bar for each op.
  const laneColor = { compute: "compute", comm: "comm", copy: "io", io: "io" };
  const shown = d.plan.lanes.map((_, l) => l).filter((l) => d.plan.lane.includes(l));
  const rowHeight = 22;
  function laneOptions() {
    const rows = ["phase", ...shown.map((l) => d.plan.lanes[l])];
    return { data: [cols.x, cols.x.map(() => 0)], opts: {
      height: rows.length * rowHeight + 46, series: [{}, { width: 0, points: { show: false } }],
      cursor: { sync: { key: "t", scales: ["x", null] }, points: { show: false }, y: false, drag: { x: true, y: false } },
      padding: [0, 8, 0, 0], scales: { x: { time: false }, y: { range: [0, rows.length] } },
      axes: [Z.axis({ label: "milliseconds", size: 26, space: 60 }), Z.axis({ size: 68, grid: { show: false }, ticks: { show: false }, gap: 8,
        splits: () => rows.map((_, i) => rows.length - i - 0.5), values: () => rows })],
      hooks: { draw: [drawLanes], setScale: [(u, k) => { if (k === "x" && memory) zoomed(u); }] },
    } };
  }
  function drawLanes(u) {
    const c = u.ctx, b = u.bbox, r = d.ranks[rank], h = b.height / (shown.length + 1), dpr = devicePixelRatio;
    const inks = d.plan.lanes.map((l) => css(laneColor[l])), paper = css("ground");
    const X = (step, ns) => u.valToPos(place(step, ns), "x", true);
    c.save();
    c.beginPath();
    c.rect(b.left, b.top, b.width, b.height);
    c.clip();
    c.font = 11 * dpr + "px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "left";
    const bar = (x0, x1, row, fill, name, ink) => {
      if (x1 < b.left || x0 > b.left + b.width) return;
      const w = Math.max(x1 - x0 - (x1 - x0 > 3 * dpr ? dpr : 0), 0.75 * dpr);
      c.fillStyle = fill;
      c.fillRect(x0, b.top + row * h + 2 * dpr, w, h - 4 * dpr);
      const left = Math.max(x0, b.left), room = x0 + w - left - 8 * dpr;
      if (room < 24 * dpr) return;
      const text = name();
      if (room < c.measureText(text).width) return;
      c.fillStyle = ink;
      c.fillText(text, left + 4 * dpr, b.top + (row + 0.5) * h + dpr);
    };
    if (!r.ops.length) {
      c.fillStyle = css("soft");
      c.fillText("too many ops to draw: rank 0 has them", b.left + 6 * dpr, b.top + 0.5 * h);
    }
    r.ops.forEach((o, s) => {
      phaseRuns(o, s).forEach((p) => bar(X(s, p.start), X(s, p.end), 0, css(p.phase), () => p.phase, css("text")));
      o.start.forEach((t, i) => {
        const row = shown.indexOf(d.plan.lane[i]);
        if (row >= 0 && o.end[i] > 0) bar(X(s, t), X(s, o.end[i]), row + 1, inks[d.plan.lane[i]], () => short(i), paper);
      });
    });
    c.restore();
  }
  // short is what an op does, without number, lane and waits.
  const short = (i) => d.plan.lines[i].replace(/ +after .*/, "").split(/ +/).slice(2).join(" ");
  // phaseRuns joins neighbouring compute ops of one phase.
  function phaseRuns(o, s) {
    const runs = [];
    d.plan.lane.forEach((lane, i) => {
      if (lane !== 0 || o.end[i] <= 0) return;
      const last = runs[runs.length - 1];
      if (last && last.phase === d.plan.phase[i]) last.end = o.end[i];
      else runs.push({ phase: d.plan.phase[i], start: last ? last.end : d.steps[s].start, end: o.end[i] });
    });
    if (runs.length) runs[runs.length - 1].end = d.steps[s].end;
    return runs;
  }

  // readout tells in words what is under the cursor.
  function readout(x) {
    const box = $("readout");
    box.replaceChildren();
    if (x === null || !d.steps.length) {
      box.append("Point at the chart for figures.");
      return;
    }
    const { step, ns } = back(x), r = d.ranks[rank], c = r.curves[step], o = r.ops[step];
    let i = 0;
    while (i + 1 < c.ns.length && c.ns[i + 1] <= ns) i++;
    const live = Object.values(c.kind).reduce((sum, col) => sum + col[i], 0);
    box.append("step " + d.steps[step].step + ", " + ((ns - d.steps[step].start) / 1e6).toFixed(2) + " ms: ", el("b", {}, bytes(live)), " in use, plan " + bytes(c.plan[i]) + ". ");
    for (const l of shown) {
      const op = !o ? -1 : d.plan.lane.findIndex((lane, k) => lane === l && o.start[k] <= ns && ns < o.end[k]);
      if (op >= 0) box.append(" " + d.plan.lanes[l] + " ", el("code", {}, short(op)), " (" + ms((o.end[op] - o.start[op]) / 1e6) + ")");
    }
  }

  let memory = null, lanes = null;
  function legend() {
    const r = d.ranks[rank], names = d.kinds.filter((k) => r.curves.some((c) => c.kind[k.name]));
    const mark = (text, c, dash) => el("li", { class: "mark" }, el("i", { class: dash ? "rule dash" : "rule", style: { "border-color": c } }), text);
    const far = d.limit && d.limit >= 2.5 * (r.planned_peak || r.peak.bytes);
    $("legend").replaceChildren(...names.map((k) => el("li", {}, el("button", { type: "button", "aria-pressed": String(!hidden.has(k.name)), title: k.category,
      onclick: () => { hidden.has(k.name) ? hidden.delete(k.name) : hidden.add(k.name); legend(); memory.draw(); } }, Z.chip(color(k.name)), words(k.name)))),
      mark("plan", css("text"), true), mark("reserved " + bytes(r.planned_peak), css("soft")),
      ...(d.limit ? [mark("limit " + bytes(d.limit) + (far ? " (above the chart)" : ""), css("limit"))] : []));
    for (const [i, b] of [...$("legend").querySelectorAll("button")].entries()) b.dataset.kind = names[i].name;
  }

  function timeline() {
    if (!d.steps.length) {
      $("memory").replaceWith(el("p", { class: "empty" }, "No step was recorded: the run ended before its first step was done."));
      for (const e of [$("lanes"), $("readout"), $("legend"), $("controls"), document.querySelector("figcaption")]) e.remove();
      return;
    }
    if (d.ranks.length > 1) {
      $("controls").append(el("label", {}, "Rank ", el("select", { id: "rank", onchange: (e) => { rank = Number(e.target.value); legend(); draw(); details(); } },
        ...d.ranks.map((r, i) => el("option", { value: i }, String(r.rank))))));
    }
    $("controls").append(el("button", { type: "button", id: "all", disabled: true, onclick: showAll }, "Show all"));
    legend();
    $("memory").setAttribute("aria-label", "Device memory in use over time, by kind; the tables below have the figures");
    $("lanes").setAttribute("aria-label", "When each op ran, by lane");
    readout(null);
    memory = Z.chart($("memory"), memoryOptions);
    lanes = Z.chart($("lanes"), laneOptions);
    Z.themed.add(legend);
    $("memory").addEventListener("keydown", keys);
  }
  const draw = () => { memory.draw(); lanes.draw(); };
  const showAll = () => { memory.reset(); lanes.reset(); };
  function keys(e) {
    const u = memory.plot, x = u.data[0], { min, max } = u.scales.x;
    const here = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : min;
    const zoom = (f) => { const lo = Math.max(x[0], here - (here - min) * f), hi = Math.min(x[x.length - 1], here + (max - here) * f); for (const c of [memory, lanes]) c.plot.setScale("x", { min: lo, max: hi }); };
    const move = (by) => { const v = Math.min(max, Math.max(min, here + by)); u.setCursor({ left: u.valToPos(v, "x"), top: 0 }); };
    const step = (max - min) / (e.shiftKey ? 20 : 200);
    const act = { ArrowRight: () => move(step), ArrowLeft: () => move(-step), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: showAll }[e.key];
    if (act) { act(); e.preventDefault(); }
  }

  function peak() {
    if (empty("peak")) return;
    const r = d.ranks[rank], p = r.peak, box = $("peak");
    const lives = (h) => (h.first < 0 ? "always" : h.first === h.last ? "op " + h.first : "ops " + h.first + "–" + h.last);
    const kind = (h) => el("span", { title: (d.kinds.find((k) => k.name === h.kind) || {}).category }, Z.chip(color(h.kind)), words(h.kind));
    box.replaceChildren(
      el("p", {}, "Rank " + r.rank + " had most in use in step " + p.step + ", in " + p.phase + ": ", el("b", {}, bytes(p.bytes)), " (" + whole(p.bytes) + " bytes), at plan line ", el("code", {}, d.plan.lines[p.op]), "."),
      Z.table("holders", null, [{ name: "Holder" }, { name: "Kind" }, { name: "Bytes", num: true }, { name: "Share", num: true }, { name: "Unit or flat" }, { name: "Phase" }, { name: "Lives" }, { name: "Begun by plan line" }],
        p.holders.map((h) => [el("span", h.params ? { title: h.params.join(", ") } : {}, h.name), kind(h), bytes(h.bytes), percent(h.bytes, p.bytes), h.unit || "–", h.phase, lives(h), h.line ? el("code", {}, h.line.replace(/ +/g, " ")) : "–"]),
        p.others ? [["and " + p.others + " more", "", bytes(p.other_bytes), percent(p.other_bytes, p.bytes), "", "", "", ""]] : []));
  }

  // empty says that there is nothing to show where no step was recorded.
  function empty(id) {
    if (d.steps.length) return false;
    $(id).replaceChildren(el("p", { class: "empty" }, "No step was recorded."));
    return true;
  }
  function split() {
    if (empty("split")) return;
    const rows = d.ranks.map((r) => [String(r.rank), Z.stackBar(parts.map(([name, key]) => ({ name, value: r.split[key], color: css(partColor[name]) })), "step time of rank " + r.rank), ...parts.map(([, key]) => ms(r.split[key]))]);
    const head = (name) => el("span", {}, Z.chip(css(partColor[name])), " ", name);
    $("split").replaceChildren(Z.table("step time", "Mean of the steps recorded. Communication and I/O are what compute did not hide.", [{ name: "Rank" }, { name: "Share" }, ...parts.map(([name]) => ({ name: head(name), num: true }))], rows));
    for (const cell of $("split").querySelectorAll("td:nth-child(2)")) { cell.style.minWidth = "110px"; cell.style.width = "40%"; }
  }
  function phases() {
    if (empty("phases")) return;
    const rows = d.ranks.map((r) => [String(r.rank), Z.stackBar(phaseNames.map((n) => ({ name: n, value: r.phases_ms[n] || 0, color: css(n) })), "phases of rank " + r.rank), ...phaseNames.map((n) => ms(r.phases_ms[n] || 0))]);
    const head = (name) => el("span", {}, Z.chip(css(name)), " ", name);
    $("phases").replaceChildren(Z.table("phases", "Mean of the steps recorded, waits included.", [{ name: "Rank" }, { name: "Share" }, ...phaseNames.map((n) => ({ name: head(n), num: true }))], rows));
    for (const cell of $("phases").querySelectorAll("td:nth-child(2)")) { cell.style.minWidth = "110px"; cell.style.width = "40%"; }
  }

  function waits() {
    if (empty("waits")) return;
    const steps = Math.max(1, d.steps.length);
    if (!d.waits.length) { $("waits").replaceChildren(el("p", { class: "empty" }, "The compute lanes never waited.")); return; }
    const why = (w) => {
      if (w.for < 0) return "data, or the executor";
      return el("span", {}, el("code", {}, short(w.for)), w.peer >= 0 ? " (rank " + w.peer + " came last)" : "");
    };
    const more = d.wait_count - d.waits.length;
    $("waits").replaceChildren(Z.table("waits", "Pauses of compute lanes, mean of the steps recorded, longest first." + (more > 0 ? " " + more + " shorter ones are left out." : ""),
      [{ name: "Rank" }, { name: "Op that waited" }, { name: "For" }, { name: "Time a step", num: true }, { name: "Of the step", num: true }],
      d.waits.slice(0, 10).map((w) => [String(w.rank), el("code", {}, short(w.op)), why(w), ms(w.ns / 1e6 / steps), percent(w.ns, d.steps.reduce((s, x) => s + x.end - x.start, 0))])));
  }

  function used() {
    const shownRanks = d.ranks.slice(0, 8), names = [...d.kinds.map((k) => k.name), "hole"].filter((n) => d.ranks.some((r) => r.by_kind.some((k) => k.kind === n)));
    if (!names.length) { $("used").replaceChildren(el("p", { class: "empty" }, "The device's counts were not given.")); return; }
    const of = (r, n, f) => { const k = r.by_kind.find((k) => k.kind === n); return k ? k[f] : 0; };
    const cell = (r, n) => { const p = of(r, n, "planned"), u = of(r, n, "used"); return p === u ? el("span", {}, whole(u)) : el("span", { class: "bad", title: "planned " + whole(p) }, whole(u)); };
    const same = d.ranks.every((r) => r.used_peak === r.planned_peak);
    $("used").replaceChildren(Z.table("planned and used", (same ? "On every rank the device gave out exactly what was planned." : "Planned and used differ: see the marked figures.") +
      " Bytes, at the moment of the list when most is live; the hole is what no buffer uses then." + (d.ranks.length > 8 ? " Ranks 0 to 7 are shown." : ""),
      [{ name: "Kind" }, { name: "Planned", num: true }, ...shownRanks.map((r) => ({ name: "Rank " + r.rank + " used", num: true }))],
      names.map((n) => [el("span", {}, Z.chip(n === "hole" ? "transparent" : color(n)), words(n)), whole(of(shownRanks[0], n, "planned")), ...shownRanks.map((r) => cell(r, n))]),
      [["peak", whole(shownRanks[0].planned_peak), ...shownRanks.map((r) => whole(r.used_peak))]]));
  }

  function tiers() {
    if (!d.tiers.length) return;
    $("s-tiers").hidden = false;
    const words = { host: "host memory", file: "files" };
    $("tiers").replaceChildren(Z.table("tiers", "What rests there for a rank, and what moves in a step.", [{ name: "Tier" }, { name: "Holds", num: true }, { name: "Fetched a step", num: true }, { name: "Evicted a step", num: true }, { name: "All ranks", num: true }],
      d.tiers.map((t) => [words[t.name] || t.name, bytes(t.holds), bytes(t.fetched), bytes(t.evicted), bytes(t.holds * d.ranks.length)])));
  }

  function process() {
    const p = d.process, rows = [], host = d.tiers.filter((t) => t.name === "host").reduce((s, t) => s + t.holds * d.ranks.length, 0);
    const row = (name, n, note) => rows.push([name, n ? bytes(n) : "–", n ? whole(n) : "", note]);
    row("Arenas of all ranks", d.arenas, "device memory: reserved outside the Go heap");
    if (host) row("Host tier of all ranks", host, "state that rests in host memory");
    row("Resident", p.resident, "of the process, as the system counts it (VmRSS), after the last step");
    row("Resident, most ever", p.peak, "VmHWM");
    if (p.resident) row("Beside these", Math.max(0, p.resident - d.arenas - host), percent(Math.max(0, p.resident - d.arenas - host), p.resident) + " of resident: program, runtime, data; pages of arenas that no step touched make it smaller");
    row("Go runtime", p.go_heap, "heap, stacks and tables that the runtime has from the system");
    row("Mapped files", p.file, "the program itself, and data");
    if (p.cgroup.version) row("Control group's limit", p.cgroup.limit, "version " + p.cgroup.version + ", " + p.cgroup.path + (p.cgroup.limit ? "" : ": no limit") + "; in use " + bytes(p.cgroup.usage) + ", page cache included");
    $("process").replaceChildren(Z.table("process", null, [{ name: "" }, { name: "Size", num: true }, { name: "Bytes", num: true }, { name: "What" }], rows));
  }

  function details() { peak(); }
  head();
  timeline();
  const tables = () => { details(); split(); phases(); waits(); used(); tiers(); process(); };
  tables();
  Z.themed.add(tables);
})();
