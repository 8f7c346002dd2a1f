// The live page: follows a run's events, and shows its history when it comes late.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { el, bytes, ms, percent, whole, figure, css } = Z;
  const parts = [["compute", "compute_ms", "compute"], ["communication", "comm_ms", "comm"], ["I/O", "io_ms", "io"], ["wait", "wait_ms", "wait"]];
  const num = (v) => (typeof v === "string" ? Number(v) : v); // "NaN" and "Infinity" come as text
  const finite = (v) => { const n = num(v); return Number.isFinite(n) ? n : null; };
  let run = null, steps = [], at = null, ended = false, stale = "", scheduled = false;
  const rankColor = (r) => `hsl(${(210 + 137.5 * r) % 360} 60% ${Z.dark.matches ? 66 : 42}%)`;

  function state(word, cls) {
    $("state").textContent = word;
    $("state").className = "state " + (cls || "");
  }

  // news takes back that a run may have been killed.
  function news() {
    if (stale) state("live", "live");
    stale = "";
    touch();
  }
  // A later event of a step replaces what is known of it: a step done again after a resume, or sent again after a reconnect.
  function addStep(s) {
    while (steps.length && steps[steps.length - 1].step >= s.step) steps.pop();
    for (const k of ["loss", "lr", "norm", "tokens_per_s", "step_ms", "val_loss"]) if (k in s) s[k] = num(s[k]);
    steps.push(s);
    news();
  }
  function addVal(v) {
    const s = steps.findLast((s) => s.step <= v.step);
    if (s) s.val_loss = num(v.val_loss);
    news();
  }

  function connect() {
    const source = new EventSource("events");
    const on = (name, f) => source.addEventListener(name, (e) => f(JSON.parse(e.data)));
    source.onopen = () => (stale ? state(stale, "lost") : state("live", "live"));
    source.onerror = () => { if (!ended) state(source.readyState === EventSource.CLOSED ? "closed: reload to try again" : "connection lost, trying again", "lost"); };
    on("run", (r) => {
      if (run && run.id !== r.id) { steps = []; at = null; stale = ""; }
      run = r;
      document.title = r.title + " – zeroshard";
      $("title").textContent = r.title;
      $("facts").replaceChildren(...r.facts.map((f) => el("li", {}, f.name + " ", el("b", {}, f.value))));
      touch();
    });
    on("step", addStep);
    on("val", addVal);
    on("at", (p) => { at = p; ranks(); });
    on("stale", (e) => {
      stale = "no news since " + new Date(e.since_ms).toLocaleString() + ": it may have been killed";
      state(stale, "lost");
    });
    on("end", (e) => {
      ended = true;
      stale = "";
      source.close();
      at = null;
      state(e.error || "finished", e.error ? "lost" : "");
      touch();
    });
  }

  // Charts: a name, the series as {name, color, data, dash}, and how y is written.
  const panels = {};
  const x = () => steps.map((s) => s.step);
  const column = (f) => steps.map((s) => { const v = f(s); return v === undefined ? null : finite(v); });
  function panel(id, make, values, extra) {
    const options = () => {
      const p = make();
      const stepped = p.stack;
      const data = [x(), ...p.series.map((s) => s.data)];
      return { data, opts: {
        height: 190, padding: [8, 8, 0, 0],
        cursor: { y: false, drag: { x: true, y: false }, points: { size: 6 } },
        scales: { x: { time: false, range: (u, a, b) => (a === null ? [0, Math.max(1, run ? run.steps : 1)] : a === b ? [a - 1, b + 1] : [a, b]) },
          y: { range: (u, a, b) => range(a, b, p) } },
        series: [{}, ...p.series.map((s) => ({ label: s.name, stroke: s.color, fill: stepped ? s.color : undefined, width: stepped ? 0 : 1.5, dash: s.dash,
          spanGaps: true, points: { show: s.points || ((u, i) => Z.lone(u.data[i])), size: 5 } }))],
        axes: [Z.axis({ label: "step", incrs: [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000], size: 24, space: 60 }),
          (extra && extra.bytes ? Z.byteAxis : Z.axis)({ size: 68, values: (_, v) => v.map((n) => values(n)) })],
        hooks: { setCursor: [(u) => legend(id, p, values, u.cursor.idx)] },
      } };
    };
    panels[id] = { options, chart: null, legend: () => legend(id, make(), values, null) };
  }
  function range(a, b, p) {
    if (a === null || a === undefined) return [0, 1];
    if (p.zero) return [0, (b || 1) * 1.06];
    const pad = (b - a || Math.abs(b) || 1) * 0.06;
    return [a - pad, b + pad];
  }
  function legend(id, p, values, idx) {
    const i = idx === null || idx === undefined ? steps.length - 1 : idx;
    const entry = (s) => {
      const v = (s.own || s.data)[i];
      const text = s.constant ? values(s.data[0]) : v === null || v === undefined ? "" : values(v);
      return el("li", { class: "mark" }, el("i", { class: s.dash ? "rule dash" : p.stack ? "chip" : "rule", style: p.stack && !s.dash ? { background: s.color } : { "border-color": s.color } }), s.name + " ", el("b", {}, text));
    };
    $("l-" + id).replaceChildren(...[...p.series].reverse().map(entry), idx === null || idx === undefined || !steps[i] ? "" : el("li", { class: "mark" }, "at step " + steps[i].step));
  }

  panel("loss", () => ({ series: [
    { name: "held out", color: css("comm"), data: column((s) => s.val_loss), points: true },
    { name: "training", color: css("compute"), data: column((s) => s.loss) },
  ] }), (v) => figure(v));
  panel("speed", () => ({ zero: true, series: [{ name: "all ranks", color: css("compute"), data: column((s) => s.tokens_per_s) }] }), (v) => whole(Math.round(v)));
  panel("lr", () => ({ zero: true, series: [{ name: "rate", color: css("compute"), data: column((s) => s.lr) }] }), (v) => figure(v, 3));
  panel("norm", () => ({ zero: true, series: [{ name: "before clipping", color: css("compute"), data: column((s) => s.norm) }] }), (v) => figure(v));
  panel("split", () => {
    const mean = (s, key) => (!s.split || !s.split.length ? null : s.split.reduce((t, p) => t + num(p[key]), 0) / s.split.length);
    let sum = steps.map(() => 0);
    const series = parts.map(([name, key, color]) => {
      const own = steps.map((s) => mean(s, key));
      sum = sum.map((v, i) => v + (own[i] || 0));
      return { name, color: css(color), own, data: sum };
    });
    return { zero: true, stack: true, series: series.reverse() };
  }, ms);
  panel("memory", () => {
    const n = run ? run.ranks : 0, shown = Array.from({ length: Math.min(n, 8) }, (_, r) => r);
    const series = shown.map((r) => ({ name: "rank " + r, color: rankColor(r), data: column((s) => s.memory && s.memory[r] && s.memory[r].peak) })).reverse();
    const flat = (v) => steps.map(() => v);
    const used = Math.max(0, ...steps.map((s) => (s.memory && s.memory.length ? Math.max(...s.memory.map((m) => m.used)) : 0)));
    const drawn = (run && run.planned) || used;
    if (drawn) series.unshift({ name: run && run.planned ? "planned" : "reserved", color: css("soft"), data: flat(drawn), dash: [5, 4], constant: true });
    if (run && run.limit && run.limit < 2.5 * drawn) series.unshift({ name: "limit", color: css("limit"), data: flat(run.limit), dash: [2, 3], constant: true });
    return { zero: true, series };
  }, (v) => bytes(v), { bytes: true });

  function tiles() {
    const s = steps[steps.length - 1], val = steps.findLast((s) => s.val_loss !== undefined);
    const left = s && run && run.steps > s.step ? ((run.steps - s.step) * steps.slice(-50).reduce((t, s) => t + s.step_ms, 0)) / Math.min(50, steps.length) : 0;
    const skipped = steps.filter((s) => s.skipped).length;
    $("tiles").replaceChildren(
      Z.tile("Step", s ? s.step + (run.steps ? " of " + run.steps : "") : "–", s ? (left && !ended ? "about " + duration(left) + " left" : skipped ? skipped + " skipped" : "") : "no step yet"),
      Z.tile("Loss", s ? figure(s.loss) : "–", "nats per token"),
      Z.tile("Held-out loss", val ? figure(val.val_loss) : "–", val ? "after step " + val.step : "not measured yet"),
      Z.tile("Tokens per second", s ? whole(Math.round(s.tokens_per_s)) : "–", s ? ms(s.step_ms) + " a step" : ""),
      Z.tile("Device memory", s && s.memory && s.memory.length ? bytes(Math.max(...s.memory.map((m) => m.used))) : run && run.planned ? bytes(run.planned) : "–",
        run && run.planned ? "reserved by a rank, planned " + bytes(run.planned) : "reserved by a rank"),
      Z.tile("Process", s && s.resident_bytes ? bytes(s.resident_bytes) : "–", "resident, all ranks"),
    );
  }
  function duration(v) {
    const sec = Math.round(v / 1000);
    return sec < 60 ? sec + " s" : sec < 3600 ? Math.floor(sec / 60) + " min " + (sec % 60) + " s" : Math.floor(sec / 3600) + " h " + Math.floor((sec % 3600) / 60) + " min";
  }

  // ranks shows where each rank stands, or what its last step was.
  function ranks() {
    if (!run) return;
    const s = steps[steps.length - 1], box = $("ranks");
    const cards = [];
    for (let r = 0; r < run.ranks; r++) {
      const p = at && at[r], m = s && s.memory && s.memory[r], split = s && s.split && s.split[r];
      const live = p ? p.live : m ? m.peak : 0, all = (m && m.used) || run.planned || live;
      const main = p && p.lanes.find((l) => l.lane === "compute");
      const op = main && main.op >= 0 ? main.op : -1;
      cards.push(el("div", { class: "rank" },
        el("h3", {}, "Rank " + r, el("span", {}, p ? (op >= 0 ? p.mode + ", op " + op + " of " + p.ops : "not begun") : ended ? "ended" : "")),
        el("div", { class: "meter", role: "img", "aria-label": "device memory in use" }, el("i", { style: { width: (100 * live) / (all || 1) + "%" } })),
        el("div", { class: "soft" }, bytes(live) + (p ? " in use of " : " most in use of ") + bytes(all) + " reserved"),
        split ? el("div", { style: { "margin-top": "6px" } }, Z.stackBar(parts.map(([name, key, color]) => ({ name: name + " " + ms(num(split[key])), value: num(split[key]), color: css(color) })), "step time"),
          el("div", { class: "soft" }, parts.filter(([, key]) => num(split[key]) >= 0.0005 * num(s.step_ms)).map(([name, key]) => name + " " + percent(num(split[key]), num(s.step_ms))).join(", "))) : null,
        p ? el("dl", {}, ...p.lanes.filter((l) => l.op >= 0).flatMap((l) => [el("dt", {}, l.lane), el("dd", { class: l.busy ? "" : "idle", title: l.line }, (l.busy ? "" : "after ") + short(l.line))])) : null));
    }
    box.replaceChildren(...cards);
  }
  const short = (line) => line.replace(/ +after .*/, "").split(/ +/).slice(2).join(" ");

  // touch draws at the next frame, once for all that came since the last.
  function touch() {
    if (!scheduled) requestAnimationFrame(draw);
    scheduled = true;
  }
  function draw() {
    scheduled = false;
    if (!run) return;
    tiles();
    ranks();
    for (const [id, p] of Object.entries(panels)) {
      const u = p.chart && p.chart.plot;
      if (!u || u.series.length !== p.options().opts.series.length) {
        if (p.chart) p.chart.draw();
        else {
          p.chart = Z.chart($(id), p.options);
          $(id).addEventListener("keydown", (e) => keys(p.chart.plot, e));
        }
      } else {
        const old = u.data[0], zoomed = old.length && (u.scales.x.min > old[0] || u.scales.x.max < old[old.length - 1]);
        u.setData(p.options().data, !zoomed);
        if (zoomed) u.redraw();
      }
      p.legend();
    }
  }
  // keys moves a chart's cursor from step to step.
  function keys(u, e) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key], x = u.data[0];
    if (!by || !x.length) return;
    const from = u.cursor.idx === null || u.cursor.idx === undefined ? (by > 0 ? -1 : x.length) : u.cursor.idx;
    const i = Math.min(x.length - 1, Math.max(0, from + by * (e.shiftKey ? 10 : 1)));
    u.setCursor({ left: u.valToPos(x[i], "x"), top: 0 });
    e.preventDefault();
  }
  Z.themed.add(() => { touch(); for (const p of Object.values(panels)) if (p.chart) p.chart.draw(); });
  connect();
})();
