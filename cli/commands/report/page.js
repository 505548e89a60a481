"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const STEP = 200;
const byId = (id) => document.getElementById(id);
const state = { verdicts: new Set(), op: "", dtype: "", form: "", key: "", down: false, shown: STEP, picked: null };

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties || {});
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}
function tone(verdict) {
  if (verdict === "PASS") return "good";
  if (verdict === "MISTRUSTED" || verdict === "FLAKY" || verdict === "XPASS") return "warn";
  return data.verdicts[verdict].fails ? "bad" : "dim";
}
function number(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "number" ? String(+value.toPrecision(4)) : value;
}
const ulpOf = (r) => (r.measure && r.measure.max_ulp !== undefined ? r.measure.max_ulp : null);
const rank = Object.fromEntries(Object.keys(data.verdicts).map((v, i) => [v, i]));
const columns = {
  verdict: (r) => rank[r.verdict], case: (r) => r.case, tier: (r) => r.tier || "~",
  ulp: (r) => (ulpOf(r) === null ? -1 : Number(ulpOf(r)) || Infinity), seconds: (r) => r.seconds,
};

function matching() {
  const op = state.op.trim().toLowerCase();
  const found = data.results.filter((r) =>
    (!state.verdicts.size || state.verdicts.has(r.verdict)) &&
    (!op || r.case.toLowerCase().includes(op)) &&
    (!state.dtype || r.dtype === state.dtype) && (!state.form || r.form === state.form));
  const of = columns[state.key];
  if (of) {
    const sign = state.down ? -1 : 1;
    found.sort((a, b) => sign * (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0));
  }
  return found;
}

function row(r) {
  const made = element("tr", { tabIndex: 0 },
    element("td", { className: "verdict " + tone(r.verdict), textContent: r.verdict }),
    element("td", { className: "case", textContent: r.case }),
    element("td", { textContent: r.tier || "" }),
    element("td", { className: "number", textContent: number(ulpOf(r)) }),
    element("td", { className: "number", textContent: (r.seconds * 1000).toFixed(1) }));
  made.setAttribute("aria-selected", String(r === state.picked));
  const pick = () => { state.picked = r; draw(); show(r); };
  made.addEventListener("click", pick);
  made.addEventListener("keydown", (e) => { if (e.key === "Enter") pick(); });
  return made;
}

function draw() {
  const found = matching();
  byId("rows").replaceChildren(...found.slice(0, state.shown).map(row));
  byId("count").textContent = `${found.length} of ${data.results.length} cases`;
  byId("more").hidden = found.length <= state.shown;
  byId("more").textContent = `show ${Math.min(STEP, found.length - state.shown)} more`;
  byId("none").hidden = found.length > 0;
  for (const chip of byId("verdicts").children) {
    chip.setAttribute("aria-pressed", String(state.verdicts.has(chip.dataset.verdict)));
  }
  for (const head of document.querySelectorAll("th[data-key]")) {
    const on = head.dataset.key === state.key;
    head.setAttribute("aria-sort", on ? (state.down ? "descending" : "ascending") : "none");
  }
}

// Text from a journal becomes text nodes and attributes, never markup.
function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

function histogram(given, limit) {
  const counts = given.map((n) => Number(n) || 0);
  const names = ["= 0", ...data.buckets.slice(1).map((b) => "≤ " + b), "> " + data.buckets.at(-1), "NaN/Inf"];
  const most = Math.max(...counts, 1), height = 18, label = 62, width = 300;
  const made = drawn("svg", { viewBox: `0 0 ${width} ${counts.length * height}`, width: "100%",
    role: "img", "aria-label": "Elements by error in ULP" },
    drawn("line", { x1: label, x2: label, y1: 0, y2: counts.length * height }));
  counts.forEach((n, i) => {
    const length = n ? Math.max(2, (Math.log10(n + 1) / Math.log10(most + 1)) * (width - label - 60)) : 0;
    const over = i === counts.length - 1 || (limit !== null && Number(data.buckets[i] ?? Infinity) > limit);
    made.append(drawn("text", { x: label - 6, y: i * height + 13, "text-anchor": "end" }, names[i] ?? ""),
      drawn("rect", { x: label, y: i * height + 3, width: length, height: height - 6, rx: 2,
        class: over && n ? "over" : "" }));
    if (n) made.append(drawn("text", { x: label + length + 5, y: i * height + 13 }, String(n)));
  });
  return element("div", {}, made);
}

function facts(pairs) {
  const list = element("dl");
  for (const [name, value] of pairs) {
    if (value === "" || value === undefined || value === null) continue;
    list.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
  }
  return list;
}

function tiers(r) {
  const table = element("table");
  for (const [tier, rule, passed, numbers] of r.outcomes) {
    table.append(element("tr", {},
      element("td", { textContent: tier }),
      element("td", { className: passed ? "good" : "bad", textContent: passed ? "holds" : "fails" }),
      element("td", { textContent: `${rule}: ${numbers}` })));
  }
  return table;
}

function show(r) {
  const m = r.measure || {}, worst = m.worst;
  const head = (text) => element("h3", { textContent: text });
  const copy = element("button", { className: "copy", type: "button", textContent: "copy" });
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(r.repro); copy.textContent = "copied"; }
    catch { copy.textContent = "select the text to copy it"; }
  });
  const parts = [
    element("h2", { textContent: r.case }),
    element("div", { className: tone(r.verdict) }, element("b", { textContent: r.verdict }),
      ` · ${data.verdicts[r.verdict].meaning}`),
    r.reason ? element("p", { className: "reason", textContent: r.reason }) : null,
    head("Run it again"), element("pre", { textContent: r.repro }), copy,
    head("Case"),
    facts([["required", r.required], ["strictest tier", r.tier], ["inputs", (r.inputs || []).join(", ")],
      ["calls", r.aclnn], ["seed", r.seed], ["guards", (r.guards || []).join("; ")],
      ["known issue", r.issue], ["rechecks", (r.rechecks || []).join(", ")]]),
  ];
  if (r.cause) parts.splice(2, 0, element("p", { className: "reason", textContent: r.cause.text }));
  if (r.pattern) parts.push(head("Where the wrong elements are"), facts([["where", r.pattern.text],
    ["wrong", r.pattern.wrong + " of " + r.pattern.elements]]),
    element("pre", { className: "map", title: "memory order, one block a character", textContent: r.pattern.blocks }));
  if (worst) {
    parts.push(head("Worst element"), facts([["index", "[" + worst.index.join(", ") + "]"],
      ["got", worst.got], ["expected", worst.expected],
      ...Object.entries(worst.inputs || {})]));
  }
  if (m.histogram && m.histogram.length) {
    parts.push(head("Elements by error in ULP (log scale)"), histogram(m.histogram, null),
      facts([["max", number(m.max_ulp) + " ULP"], ["mean", number(m.mean_ulp) + " ULP"],
        ["bias", number(m.bias) + " ULP"], ["max absolute", number(m.max_absolute)],
        ["max relative", number(m.max_relative)], ["componentwise ratio", number(m.ratio)]]));
  }
  if (r.outcomes && r.outcomes.length) parts.push(head("Tiers"), tiers(r));
  byId("detail").replaceChildren(...parts.filter(Boolean));
}

function options(id, values) {
  byId(id).replaceChildren(element("option", { value: "", textContent: "any" }),
    ...[...new Set(values)].filter(Boolean).sort().map((v) => element("option", { value: v, textContent: v })));
  byId(id).addEventListener("change", (e) => { state[id] = e.target.value; state.shown = STEP; draw(); });
}

function start() {
  document.title = data.title;
  byId("title").textContent = data.title;
  byId("subtitle").textContent = [data.subtitle, data.started].filter(Boolean).join(" · ");
  byId("totals").textContent = data.totals;
  if (data.interrupted) {
    byId("interrupted").hidden = false;
    byId("interrupted").textContent = "The run was cut off: this report is partial. Under way: " +
      (data.unfinished.join(", ") || "nothing");
  }
  const counts = {};
  for (const r of data.results) counts[r.verdict] = (counts[r.verdict] || 0) + 1;
  for (const verdict of Object.keys(data.verdicts)) {
    if (!counts[verdict]) continue;
    const chip = element("button", { className: "chip " + tone(verdict), type: "button", title: data.verdicts[verdict].meaning },
      verdict, element("b", { textContent: counts[verdict] }));
    chip.dataset.verdict = verdict;
    chip.addEventListener("click", () => {
      state.verdicts.has(verdict) ? state.verdicts.delete(verdict) : state.verdicts.add(verdict);
      state.shown = STEP; draw();
    });
    byId("verdicts").append(chip);
  }
  byId("ops").replaceChildren(...[...new Set(data.results.map((r) => r.op))].map((op) => element("option", { value: op })));
  byId("op").addEventListener("input", (e) => { state.op = e.target.value; state.shown = STEP; draw(); });
  options("dtype", data.results.map((r) => r.dtype));
  options("form", data.results.map((r) => r.form));
  byId("clear").addEventListener("click", () => {
    state.verdicts.clear(); state.op = state.dtype = state.form = state.key = ""; state.shown = STEP;
    for (const id of ["op", "dtype", "form"]) byId(id).value = "";
    draw();
  });
  byId("more").addEventListener("click", () => { state.shown += STEP; draw(); });
  for (const head of document.querySelectorAll("th[data-key]")) {
    head.addEventListener("click", () => {
      state.down = state.key === head.dataset.key ? !state.down : head.dataset.key !== "case";
      state.key = head.dataset.key; draw();
    });
  }
  byId("environment").replaceWith(Object.assign(facts(Object.entries(data.environment)), { id: "environment" }));
  byId("meanings").replaceWith(Object.assign(facts(Object.entries(data.verdicts).map(([v, d]) => [v, d.meaning])), { id: "meanings" }));
  if (Object.keys(data.verdicts).some((v) => counts[v] && data.verdicts[v].fails)) {
    state.key = "verdict";
  }
  const first = matching()[0];
  if (first) { state.picked = first; show(first); }
  draw();
}
start();
