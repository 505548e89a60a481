"use strict";
const at = (id) => document.getElementById(id);
const many = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const state = { sort: "", down: false, folded: true, filter: "", host: "" };

/* 3: take out; 2: failing, slow or to be tested again; 0: healthy. */
const rank = (d) => d.action === "take out" ? 3 : d.action || d.failing || d.slow ? 2 : 0;
const shade = (d) => ["ok", "ok", "slow", "out"][rank(d)];
const natural = new Intl.Collator("en", { numeric: true }).compare;

const COLUMNS = [
  ["host", (d) => d.node], ["device", (d) => d.device], ["to do", (d) => d.action],
  ["differs", (d) => d.kinds.join(", ")], ["cases", (d) => d.cases || ""],
  ...FLEET.verdicts.map((v) => [v, (d) => d.counts[v] || ""]),
  ["time / median", (d) => d.time === null ? "" : d.time.toFixed(2)],
  ["serial", (d) => d.serial],
  ...(FLEET.devices.some((d) => d.health) ? [["health", (d) => d.health]] : []),
  ["trend", (d) => d],
];

function element(name, text, kind) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}

/* A bar a day: its height the share of cases that fail or differ there, one pixel for none. */
function trend(d) {
  const days = element("span", undefined, "trend");
  for (const day of FLEET.days) {
    const [judged, failing] = d.days[day] || [0, 0];
    const bar = element("i", undefined, judged ? failing ? "bad" : "good" : "none");
    bar.style.height = `${judged ? 2 + Math.round(14 * Math.min(1, 4 * failing / judged)) : 1}px`;
    bar.title = `${day}: ${failing} of ${judged} fail or differ`;
    days.append(bar);
  }
  return days;
}

function matches(d) {
  if (state.host && d.node !== state.host) return false;
  const text = [d.node, d.device, d.serial, d.chip, d.action, ...d.kinds, d.slow ? "slow" : ""].join(" ");
  return state.filter.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
}

function ordered(devices) {
  const column = COLUMNS.find(([name]) => name === state.sort);
  const worst = (a, b) => rank(b) - rank(a) || b.cases - a.cases || b.failing - a.failing;
  const place = (a, b) => natural(a.node, b.node) || natural(a.device, b.device);
  if (!column) return devices.sort((a, b) => worst(a, b) || place(a, b));
  const value = (d) => column[0] === "trend" ? d.failing : column[1](d);
  const sign = state.down ? -1 : 1;
  return devices.sort((a, b) => sign * natural(String(value(a)), String(value(b))) || place(a, b));
}

function row(d) {
  const tr = element("tr");
  for (const [name, value] of COLUMNS) {
    const shown = value(d);
    const td = element("td", name === "trend" ? undefined : String(shown));
    if (name === "trend") td.append(trend(d));
    if (name === "serial" || name === "health") td.title = d.chip;
    if (name === "to do" || name === "differs" || FLEET.failing.includes(name)) td.className = "bad";
    if (name === "time / median") td.className = d.slow ? "warn number" : "number";
    if (FLEET.verdicts.includes(name) || name === "cases") td.classList.add("number");
    tr.append(td);
  }
  return tr;
}

function show() {
  const chosen = FLEET.devices.filter(matches);
  const searching = state.filter || state.host || state.sort;
  const healthy = chosen.filter((d) => !rank(d)).length;
  const rows = state.folded && !searching ? chosen.filter(rank) : chosen;
  at("table").tBodies[0].replaceChildren(...ordered(rows).map(row));
  at("fold").hidden = Boolean(searching) || !healthy;
  at("fold").textContent = state.folded ? `show ${many(healthy, "healthy device")}`
    : `fold ${many(healthy, "healthy device")}`;
  const hosts = new Set(chosen.map((d) => d.node)).size;
  const out = chosen.filter((d) => rank(d) === 3).length;
  at("summary").textContent = `${many(chosen.length, "device")} of ${many(hosts, "host")}: `
    + `${many(healthy, "healthy device")}, ${many(out, "device")} to take out`
    + (state.host ? `; host ${state.host}, click it again for all` : "");
}

function heads() {
  const tr = element("tr");
  for (const [name] of COLUMNS) {
    const number = FLEET.verdicts.includes(name) || name === "cases" || name.startsWith("time");
    const th = element("th", undefined, number ? "number" : "");
    const button = element("button", name);
    button.type = "button";
    button.onclick = () => {
      state.down = state.sort === name && !state.down;
      state.sort = name;
      for (const other of tr.children) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      show();
    };
    th.append(button);
    tr.append(th);
  }
  at("table").tHead.append(tr);
}

/* The domain that all hosts have in common, which their short names leave out. */
function domain(nodes) {
  const tail = nodes.length > 1 ? nodes[0].split(".").slice(1) : [];
  while (tail.length && !nodes.every((n) => n.endsWith(`.${tail.join(".")}`))) tail.shift();
  return tail.some((label) => /[a-z]/i.test(label)) ? `.${tail.join(".")}` : "";
}

/* A row of the map is a host; hosts with faults come first. */
function map() {
  const hosts = new Map();
  for (const d of FLEET.devices) hosts.set(d.node, [...(hosts.get(d.node) || []), d]);
  const worst = (own) => Math.max(...own.map(rank));
  const rows = [...hosts].sort((a, b) => worst(b[1]) - worst(a[1]) || natural(a[0], b[0]));
  const common = domain([...hosts.keys()]).length;
  for (const [node, own] of rows) {
    const host = element("button", undefined, "host");
    host.type = "button";
    host.title = node;
    host.append(element("b", node.slice(0, node.length - common)));
    for (const d of own) {
      const cell = element("i", undefined, shade(d));
      cell.title = `${d.node} ${d.device} ${d.serial} ${d.action || "healthy"} ${d.kinds.join(", ")}`;
      host.append(cell);
    }
    host.onclick = () => {
      state.host = state.host === node ? "" : node;
      show();
    };
    at("map").append(host);
  }
}

if (FLEET.devices.length) {
  at("devices").hidden = false;
  at("method").textContent = FLEET.method;
  at("filter").oninput = () => { state.filter = at("filter").value; show(); };
  at("fold").onclick = () => { state.folded = !state.folded; show(); };
  heads();
  map();
  show();
}
