"use strict";
// Every word of a query is in a row's operator, product, history or speed.
const MOST = 300;
const bare = (text) => text.toLowerCase().replace(/[_.]/g, "");
const control = (name) => document.getElementById(name);

function fill(name, values) {
  for (const value of values) control(name).add(new Option(value));
}

function matches([operator, , product, cells, history, speed], words) {
  const all = bare([operator, product, history, ...speed.map(([, text]) => text)].join(" "));
  if (!words.every((word) => all.includes(word))) return false;
  if (control("product").value && product !== control("product").value) return false;
  const at = MEASURED.releases.indexOf(control("release").value);
  const asked = (at < 0 ? cells : [cells[at]]).filter(Boolean);
  const state = control("state").value;
  return asked.length > 0 && (!state || asked.some(([i]) => MEASURED.states[i] === state));
}

function cell(row, text, style) {
  const place = row.insertCell();
  place.textContent = text;
  if (style) place.className = style;
  return place;
}

function add(body, [operator, page, product, cells, history, speed]) {
  const row = body.insertRow();
  const first = cell(row, page ? "" : operator);
  if (page) {
    const link = document.createElement("a");
    link.href = `op/${page}.html`;
    link.textContent = operator;
    first.append(link);
  }
  cell(row, product);
  for (const [state, text, detail] of cells.map((one) => one || [-1, "-", ""])) {
    const place = cell(row, text, MEASURED.styles[state] ?? "dim");
    if (detail) place.append(Object.assign(document.createElement("small"), { textContent: detail }));
  }
  cell(row, history);
  const times = cell(row, "");
  for (const [word, text] of speed) {
    const line = document.createElement("div");
    line.textContent = text;
    line.className = word === "slower" ? "bad" : "good";
    times.append(line);
  }
}

function show() {
  const text = control("query").value;
  const words = text.split(/[\s,]+/).map(bare).filter(Boolean);
  const rows = MEASURED.rows.filter((row) => matches(row, words));
  const body = document.querySelector("#found tbody");
  body.replaceChildren();
  for (const row of rows.slice(0, MOST)) add(body, row);
  control("answer").textContent = `${rows.length} of ${MEASURED.rows.length} rows${rows.length > MOST ? `, the first ${MOST} shown` : ""}.`;
  history.replaceState(null, "", text ? `#${encodeURIComponent(text)}` : location.pathname);
}

fill("state", MEASURED.states);
fill("release", MEASURED.releases);
fill("product", [...new Set(MEASURED.rows.map((row) => row[2]))].sort());
control("query").value = decodeURIComponent(location.hash.slice(1));
for (const name of ["query", "state", "release", "product"]) control(name).addEventListener("input", show);
show();
