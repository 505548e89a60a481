"use strict";
// A query is words: a product or a version restricts, any other word is part of a name or family.
const PRODUCTS = {
  "950": "950", ascend950: "950", a3: "A3", "910c": "A3", a2: "910b", "910b": "910b",
  "310b": "310b", "310p": "310p", "910": "910", "910a": "910",
};
const DTYPES = { float32: "FLOAT", fp32: "FLOAT", half: "FLOAT16", fp16: "FLOAT16", bf16: "BFLOAT16", float64: "DOUBLE", fp64: "DOUBLE" };
const NOISE = new Set("can i use on with and the of in is a for run do does support supported atlas ascend cann".split(" "));
const MOST = 300;

// As names are compared: rms_norm and RmsNorm are one.
const bare = (name) => name.toLowerCase().replace(/[_.]/g, "");
const dtype = (word) => ATLAS.dtypes.indexOf(DTYPES[word] || word.toUpperCase());

function parse(text) {
  const asked = { names: [], product: "", version: "", dtype: -1 };
  for (const word of text.toLowerCase().split(/[\s,?]+/).filter(Boolean)) {
    const version = ATLAS.versions.find((v) => v.toLowerCase() === word || (/^\d+\.\d/.test(word) && v.toLowerCase().startsWith(word)));
    if (version) asked.version = version;
    else if (PRODUCTS[word]) asked.product = PRODUCTS[word];
    else if (dtype(word) >= 0) asked.dtype = dtype(word);
    else if (!NOISE.has(word)) asked.names.push(bare(word));
  }
  return asked;
}

function verdict(op, asked) {
  const [, versions, products, documented, , , , , , bits] = op;
  if (asked.version && !versions.includes(asked.version)) return ["no", `not in ${asked.version}`];
  if ((asked.product || asked.dtype >= 0) && !documented) return ["", "not documented"];
  if (asked.product && !products.includes(asked.product)) return ["no", `not on ${ATLAS.products[asked.product]}`];
  if (asked.dtype >= 0) {
    const takes = (product) => Math.floor(bits[products.indexOf(product)] / 2 ** asked.dtype) % 2 === 1;
    if (!(asked.product ? takes(asked.product) : products.some(takes))) return ["no", `not ${ATLAS.dtypes[asked.dtype]}`];
  }
  return asked.version || asked.product || asked.dtype >= 0 ? ["yes", "yes"] : ["", ""];
}

function rank(op, names) {
  const all = [bare(op[0]).replace(/^aclnn/, ""), ...op[8].split(" ").map(bare)];
  return names.some((w) => all.includes(w.replace(/^aclnn/, ""))) ? 0 : names.some((w) => all.some((n) => n.startsWith(w))) ? 1 : 2;
}

function cell(row, text, kind) {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function show() {
  const text = document.getElementById("query").value;
  const asked = parse(text);
  const found = ATLAS.ops.filter((op) => asked.names.every((w) => bare(op[0] + " " + op[4] + " " + op[5] + " " + op[8]).includes(w)));
  found.sort((a, b) => rank(a, asked.names) - rank(b, asked.names) || b[7] - a[7]);
  const judged = found.map((op) => [op, verdict(op, asked)]);
  const body = document.querySelector("#found tbody");
  body.replaceChildren();
  for (const [op, [kind, word]] of judged.slice(0, MOST)) {
    const row = body.insertRow();
    const link = document.createElement("a");
    link.href = `op/${op[0]}.html`;
    link.textContent = op[0];
    const first = cell(row, "");
    first.append(link);
    if (word) {
      const mark = document.createElement("span");
      mark.className = kind;
      mark.textContent = ` ${word}`;
      first.append(mark);
    }
    cell(row, op[1].join(", "));
    cell(row, op[3] ? op[2].map((p) => ATLAS.products[p]).join(", ") : "not documented");
    cell(row, op[4]);
    cell(row, op[5]);
    cell(row, op[6] ? "yes" : "no");
    cell(row, op[7], "number");
  }
  const yes = judged.filter(([, [kind]]) => kind === "yes").length;
  const place = [asked.dtype >= 0 && `with ${ATLAS.dtypes[asked.dtype]}`, asked.product && `on ${ATLAS.products[asked.product]}`, asked.version && `with ${asked.version}`].filter(Boolean).join(" ");
  document.getElementById("answer").textContent = place
    ? `${yes} of ${found.length} can be used ${place}.`
    : `${found.length} operators${found.length > MOST ? `, the first ${MOST} shown` : ""}.`;
  history.replaceState(null, "", text ? `#${encodeURIComponent(text)}` : location.pathname);
}

const query = document.getElementById("query");
query.value = decodeURIComponent(location.hash.slice(1));
query.addEventListener("input", show);
show();
