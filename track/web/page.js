
"use strict";
// The page draws itself from snapshots: the first is in it, the others it fetches.
const mostPoints = 600, everySecond = 1000;
const all = "";              // the choice of all heaps
const budget = "\u0000";      // the choice of the budget
let snapshots = [];          // at most mostPoints, the oldest first
let chosen = all;            // what the chart shows, and the heap of the block sizes
let paused = false;

const at = id => document.getElementById(id);

// make returns an element with text or children. Text never becomes markup.
function make(tag, content, props) {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...(Array.isArray(content) ? content : [content ?? ""]));
  return e;
}

function size(n) {
  if (n < 1024) return Math.round(n) + " B";
  let unit = -1;
  do { n /= 1024; unit++; } while (n >= 999.5 && unit < 5);
  return n.toFixed(n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2) + " " + "KMGTPE"[unit] + "iB";
}
const count = n => Math.round(n).toLocaleString("en-US");
const percent = part => Math.round(part * 100) + "%";
const fragmentation = h => h.Active > h.LiveBytes ? 1 - h.LiveBytes / h.Active : 0;

const levels = ["calm", "soft", "hard"];
const nameOf = choice => choice === all ? "all heaps" : choice === budget ? "memory budget" : choice;
const noLimit = 2 ** 62;     // Go's memory limit is larger if it is off

// The lines of the chart, the highest first: class, label, value.
const heapLines = [
  ["resident", "resident", f => f.Resident],
  ["active", "in pages in use", f => f.Active],
  ["live", "live", f => f.LiveBytes],
];
const budgetLines = [
  ["resident", "with Go", f => f.OffHeap + f.Others + f.GoHeld],
  ["active", "with others", f => f.OffHeap + f.Others],
  ["live", "off-heap", f => f.OffHeap],
];
const lines = () => chosen === budget ? budgetLines : heapLines;

// figures returns those of a heap in a snapshot, of all, or of the budget.
function figures(s, name) {
  if (name === budget) return s.Budget && { ...s.Budget, MaxBytes: s.Budget.Limit };
  if (name !== all) return s.Heaps.find(h => h.Name === name);
  const sum = { Live: 0, LiveBytes: 0, Active: 0, Resident: 0, MaxBytes: 0 };
  for (const h of s.Heaps) for (const k of ["Live", "LiveBytes", "Active", "Resident"]) sum[k] += h[k];
  return sum;
}

// earlier returns the snapshot some seconds before the last, for rates.
const earlier = () => snapshots[Math.max(0, snapshots.length - 6)];

// rate returns how much a counter of a heap, a tag, an account or a cache rose per second, as text.
function rate(of, list, counter, text) {
  const now = snapshots.at(-1), before = earlier();
  const was = before[list]?.find(x => x.Name === of.Name && x.Tag === of.Tag);
  const seconds = (Date.parse(now.Time) - Date.parse(before.Time)) / 1000;
  if (seconds <= 0 || !was || of[counter] < was[counter]) return "–";
  return text((of[counter] - was[counter]) / seconds);
}

function fill(table, head, rows) {
  table.replaceChildren(
    make("thead", make("tr", head.map(text => make("th", text, { scope: "col" })))),
    make("tbody", rows));
  for (const tr of rows) [...tr.children].forEach((cell, i) => cell.dataset.head = head[i]);
}

// section fills the table of a part of the page that is hidden without rows.
function section(id, head, rows) {
  at(id + "-section").hidden = rows.length === 0;
  fill(at(id + "-table"), head, rows);
}

const row = (name, cells) => make("tr", [make("th", name, { scope: "row" }), ...cells.map(c => c instanceof Node ? c : make("td", c))]);

function choose(name) {
  chosen = name;
  draw();
}

function drawTiles(s) {
  const sum = figures(s, all);
  const tiles = [
    ["Live, off-heap", size(sum.LiveBytes)],
    ["Resident, off-heap", size(sum.Resident)],
    ["Fragmentation", percent(fragmentation(sum))],
    ["Go's memory", size(s.GoMemory)],
  ];
  if (s.Resident > 0) tiles.push(["Resident, process", size(s.Resident)]);
  at("tiles").replaceChildren(...tiles.map(([k, v]) => make("div", [make("dt", k), make("dd", v)])));
}

function drawHeaps(s) {
  const focused = document.activeElement?.dataset?.heap;
  fill(at("heap-table"),
    ["Heap", "Live", "Blocks", "Resident", "Fragmentation", "Committed", "Limit (used)", "Slow allocs/s", "Slow frees/s", "Refused", "Purged/s"],
    s.Heaps.map(h => {
      const button = make("button", h.Name, { type: "button", onclick: () => choose(h.Name) });
      button.dataset.heap = h.Name;
      button.setAttribute("aria-pressed", h.Name === chosen);
      const tr = row(button, [
        size(h.LiveBytes), count(h.Live), size(h.Resident), percent(fragmentation(h)), size(h.Committed), limitOf(h.MaxBytes, h.Committed),
        rate(h, "Heaps", "SlowAllocs", count), rate(h, "Heaps", "SlowFrees", count), count(h.Refusals), rate(h, "Heaps", "PurgedBytes", size)]);
      tr.className = h.Name === chosen ? "chosen" : "";
      return tr;
    }));
  if (focused !== undefined) [...at("heap-table").querySelectorAll("button")].find(b => b.dataset.heap === focused)?.focus();

  const names = [all, ...s.Budget ? [budget] : [], ...s.Heaps.map(h => h.Name)], select = at("which");
  if (JSON.stringify(names) !== select.dataset.names) {
    select.replaceChildren(...names.map(n => make("option", nameOf(n), { value: n })));
    select.dataset.names = JSON.stringify(names);
  }
  select.value = chosen;
}

// limitOf writes a limit, and how much of it is used if that is known.
const limitOf = (n, used) => n > 0 ? size(n) + (used === undefined ? "" : ` (${percent(used / n)})`) : "–";
// A full cache is well: its account is at a limit, and red is only what the process lacks.
const levelOf = (p, bad) => make("td", levels[p.Level], { className: p.Level === 0 ? "" : p.Level === 2 && bad ? "bad" : "strong" });

function drawBudget(s) {
  const b = s.Budget, own = is => is ? " (own)" : "";
  section("budget", ["Limit", "Headroom", "Off-heap", "Others", "Go", "GOMEMLIMIT", "GOGC", "Pressure", "Short"],
    b ? [row(size(b.Limit), [size(b.Headroom), size(b.OffHeap), size(b.Others), size(b.GoHeld),
      (b.GoLimit < noLimit ? size(b.GoLimit) : "off") + own(b.UserLimit), (b.GCPercent >= 0 ? b.GCPercent : "off") + own(b.UserGC),
      levelOf(b.Pressure, true), make("td", size(b.Short), { className: b.Short > 0 ? "bad" : "" })])] : []);
  if (b) at("budget-note").textContent = `The limit is from ${b.Source}. Go is what its memory limit counts; others are neither Go nor a heap.` +
    (b.UserLimit || b.UserGC ? " Own settings are the program's, and are left alone." : "") + (b.Problem ? ` ${b.Problem}.` : "");
}

function drawAccounts(s) {
  section("account", ["Account", "Used", "Reserved", "Soft limit", "Hard limit (used)", "Peak", "Pressure", "Refused", "Evicted/s"],
    (s.Accounts ?? []).map(a => row(a.Name, [
      size(a.Used), size(a.Reserved), limitOf(a.Soft), limitOf(a.MaxBytes, a.Used),
      size(a.Peak), levelOf(a.Pressure, false), count(a.Refusals), rate(a, "Accounts", "Evicted", size)])));
}

function drawCaches(s) {
  const caches = s.Caches ?? [], each = (c, counters) => counters.map(counter => rate(c, "Caches", counter, count));
  section("cache", ["Cache", "Entries", "Live", "Limit (used)", "Hit ratio", "over time", "Hits/s", "Misses/s",
    "Loads/s", "Failed/s", "Refreshed/s", "Sets/s", "Evicted/s", "Expired/s", "Shrunk/s"],
    caches.map(c => row(c.Name, [count(c.Len), size(c.Live), limitOf(c.MaxBytes, c.Reserved), hitRatio(c), hitPicture(c),
      ...each(c, ["Hits", "Misses", "Loads", "LoadsFailed", "Refreshes", "Sets", "Evicted", "Expired", "Shrunk"])])));
}

// hitsOf returns the part of a cache's reads between two snapshots that found an entry, or undefined.
function hitsOf(name, from, to) {
  const [was, c] = [from, to].map(s => s.Caches?.find(x => x.Name === name));
  if (!was || !c || c.Hits < was.Hits || c.Misses < was.Misses) return undefined;
  const hits = c.Hits - was.Hits, reads = hits + c.Misses - was.Misses;
  return reads > 0 ? hits / reads : undefined;
}

// hitRatio returns the part of a cache's reads that found an entry, of the last seconds.
function hitRatio(c) {
  const part = hitsOf(c.Name, earlier(), snapshots.at(-1));
  return part === undefined ? "–" : (100 * part).toFixed(1) + "%";
}

// hitPicture returns a line of the hit ratio over all snapshots, 0 to 100%, without those that had
// no reads.
function hitPicture(c) {
  const width = 52, height = 20;
  const parts = snapshots.map((s, i) => hitsOf(c.Name, snapshots[Math.max(0, i - 5)], s));
  const d = parts.map((part, i) => part === undefined ? "" :
    `${parts[i - 1] === undefined ? "M" : "L"}${(width * i / (parts.length - 1)).toFixed(1)} ${(height - 1 - (height - 2) * part).toFixed(1)}`);
  const picture = svg("svg", { class: "spark", role: "img", viewBox: `0 0 ${width} ${height}`, "aria-label": "hit ratio over time" });
  picture.append(svg("path", { class: "line live", d: d.join("") }));
  return make("td", [picture]);
}

function drawTags(s) {
  section("tag", ["Tag", "Live", "Blocks", "Peak", "Allocs/s", "Frees/s"],
    (s.Tags ?? []).map(t => row(t.Tag, [
      size(t.LiveBytes), count(t.Live), size(t.PeakBytes), rate(t, "Tags", "Allocs", count), rate(t, "Tags", "Frees", count)])));
}

function drawGuards(s) {
  section("guard", ["Heap", "Guarded blocks", "Ever", "Skipped"],
    s.Heaps.filter(h => h.GuardedEver > 0 || h.GuardsSkipped > 0)
      .map(h => row(h.Name, [count(h.Guarded), count(h.GuardedEver), count(h.GuardsSkipped)])));
}

function drawClasses(s) {
  const every = chosen === all || chosen === budget;
  const heaps = s.Heaps.filter(h => every || h.Name === chosen), sums = new Map();
  let large = 0, largeBytes = 0;
  for (const h of heaps) {
    large += h.Large;
    largeBytes += h.LargeBytes;
    for (const c of h.Classes ?? []) {
      const sum = sums.get(c.BlockSize) ?? { BlockSize: c.BlockSize, Live: 0, Cached: 0, Free: 0, Spans: 0 };
      for (const k of ["Live", "Cached", "Free", "Spans"]) sum[k] += c[k];
      sums.set(c.BlockSize, sum);
    }
  }
  const rows = [...sums.values()].sort((a, b) => a.BlockSize - b.BlockSize).map(c => {
    const part = c.Live / (c.Live + c.Cached + c.Free || 1);
    const bar = make("span", make("span"), { className: "bar" });
    bar.firstChild.style.width = percent(part);
    return row(`${count(c.BlockSize)} B`, [count(c.Live), count(c.Cached), count(c.Free), count(c.Spans), size(c.Live * c.BlockSize), make("td", [percent(part) + " ", bar])]);
  });
  if (large > 0) rows.push(row("larger", [count(large), "–", "–", "–", size(largeBytes), "–"]));
  at("classes").textContent = every ? "Block sizes, all heaps" : "Block sizes of " + chosen;
  fill(at("class-table"), ["Block size", "Live", "In caches", "Free", "Spans", "Live bytes", "In use"], rows);
}

const frame = c => `${c.Function} ${c.File}:${c.Line}`;

// pathOf returns the first caller of a stack, and the one that tells it from others with that.
function pathOf(st, stacks) {
  const callers = st.Callers ?? [], path = n => callers.slice(0, n).map(frame).join();
  let n = 1;
  const alike = o => o !== st && o.Heap === st.Heap && o.Tag === st.Tag && o.Through === st.Through && (o.Callers ?? []).slice(0, n).map(frame).join() === path(n);
  while (n < callers.length && stacks.some(alike)) n++;
  return callers.length === 0 ? "(other)" : frame(callers[0]) + (n > 1 ? ", called by " + frame(callers[n - 1]) : "");
}

function drawStacks(s) {
  const stacks = s.Stacks ?? [], list = at("stack-list");
  at("stack-section").hidden = stacks.length === 0;
  at("stack-note").textContent = s.SampleRate === 1 ? "Every block is counted." : `Estimated from one in ${count(s.SampleRate)} bytes.`;
  const key = st => [st.Heap, st.Tag, st.Through, ...(st.Callers ?? []).map(frame)].join("\n");
  const open = new Set([...list.querySelectorAll("details[open]")].map(d => d.dataset.key));
  list.replaceChildren(...stacks.map(st => {
    const d = make("details", [
      make("summary", `${size(st.Bytes)} in ${count(st.Blocks)} ${st.Blocks === 1 ? "block" : "blocks"} of ${st.Heap}${st.Tag ? ", tag " + st.Tag : ""}: ${pathOf(st, stacks)}${st.Through ? " through " + st.Through : ""}`),
      make("ol", (st.Callers ?? []).map(c => make("li", frame(c))))]);
    d.dataset.key = key(st);
    d.open = open.has(key(st));
    return d;
  }));
}

// step returns a round distance of ticks, so that about four reach most.
function step(most) {
  let s = 1;
  while (s * 4 < most) s *= 2;
  return s;
}

function svg(tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

function drawChart() {
  const box = at("chart"), width = Math.max(box.clientWidth, 200), height = box.clientHeight || 240;
  const left = 72, right = 12, top = 10, bottom = 26;
  const points = snapshots.map(s => ({ t: Date.parse(s.Time), f: figures(s, chosen) })).filter(p => p.f);
  if (points.length === 0) return box.replaceChildren();
  const last = points.at(-1), span = Math.max(60e3, last.t - points[0].t);
  const limit = last.f.MaxBytes;
  let most = Math.max(...points.map(p => Math.max(...lines().map(([, , value]) => value(p.f)))), 1024);
  const showLimit = limit > 0 && limit < 4 * most;
  if (showLimit) most = Math.max(most, limit);
  const tick = step(most), ceiling = Math.ceil(most * 1.02 / tick) * tick;
  const x = t => left + (width - left - right) * (1 - (last.t - t) / span);
  const y = n => top + (height - top - bottom) * (1 - n / ceiling);

  const now = figures(snapshots.at(-1), chosen) ?? last.f;
  const picture = svg("svg", {
    role: "img", viewBox: `0 0 ${width} ${height}`,
    "aria-label": `${nameOf(chosen)}: ${lines().toReversed().map(([, label, value]) => `${size(value(now))} ${label}`).join(", ")}, over ${Math.round(span / 1000)} seconds`,
  });
  for (let n = 0; n <= ceiling; n += tick) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(n), y2: y(n) }),
      svg("text", { x: left - 8, y: y(n) + 4, "text-anchor": "end" }, size(n)));
  }
  const ago = ms => ms === 0 ? "now" : ms < 120e3 ? `${Math.round(ms / 1000)} s ago` : `${(ms / 60e3).toFixed(1).replace(".0", "")} min ago`;
  for (const part of [0, 0.5, 1]) {
    picture.append(svg("text", { x: x(last.t - span * part), y: height - 6, "text-anchor": part === 0 ? "end" : part === 1 ? "start" : "middle" }, ago(span * part)));
  }
  const line = value => points.map((p, i) => `${i ? "L" : "M"}${x(p.t).toFixed(1)} ${y(value(p.f)).toFixed(1)}`).join("");
  picture.append(svg("path", { class: "under", d: `${line(lines().at(-1)[2])}L${x(last.t)} ${y(0)}L${x(points[0].t)} ${y(0)}Z` }));
  if (showLimit) picture.append(svg("line", { class: "line limit", x1: left, x2: width - right, y1: y(limit), y2: y(limit) }),
    svg("text", { x: left + 6, y: y(limit) + 14 }, "limit"));
  for (const [name, , value] of lines()) {
    picture.append(svg("path", { class: "line " + name, d: line(value) }));
  }
  at("legend").replaceChildren(...lines().map(([name, label]) => make("li", label, { className: name })));
  picture.dataset.points = points.length;
  box.replaceChildren(picture);
}

function draw() {
  const s = snapshots.at(-1);
  if (chosen !== all && !figures(s, chosen)) chosen = all;
  const up = Math.round((Date.parse(s.Time) - Date.parse(s.Started)) / 1000);
  at("process").textContent = `${s.Program}, pid ${s.PID}, ${s.Go}, up ${Math.floor(up / 3600)} h ${Math.floor(up / 60) % 60} min ${up % 60} s` +
    (s.Slow ? `; ${s.Slow}` : "");
  drawTiles(s);
  drawChart();
  drawBudget(s);
  drawHeaps(s);
  drawAccounts(s);
  drawCaches(s);
  drawTags(s);
  drawGuards(s);
  drawClasses(s);
  drawStacks(s);
}

function add(s) {
  const last = snapshots.at(-1);
  if (last && (last.PID !== s.PID || last.Started !== s.Started)) snapshots = []; // another process
  snapshots.push(s);
  if (snapshots.length > mostPoints) snapshots.shift();
  draw();
}

async function update() {
  try {
    const answer = await fetch("?format=json", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error("status " + answer.status);
    add(await answer.json());
    at("status").textContent = "";
  } catch (e) {
    at("status").textContent = `The process does not answer (${e.message}). These figures are of ${new Date(snapshots.at(-1).Time).toLocaleTimeString()}.`;
  }
}

async function run() {
  for (;;) {
    await new Promise(wake => setTimeout(wake, everySecond));
    if (!paused && !document.hidden) await update();
  }
}

at("which").onchange = e => choose(e.target.value);
at("pause").onclick = () => {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", paused);
  at("pause").textContent = paused ? "Go on" : "Pause";
};
new ResizeObserver(drawChart).observe(at("chart"));
add(JSON.parse(at("snapshot").textContent));
run();
