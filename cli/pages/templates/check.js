const STEP = 200;
const byId = (id) => document.getElementById(id);
const state = { verdicts: new Set(), case: "", dtype: "", form: "", key: "", down: false, shown: STEP };
let data, verdicts;

function matching() {
  const words = state.case.trim().toLowerCase();
  const found = data.cases.filter((r) =>
    (!state.verdicts.size || state.verdicts.has(r.verdict)) && (!words || r.case.toLowerCase().includes(words)) &&
    (!state.dtype || r.dtype === state.dtype) && (!state.form || r.form === state.form));
  if (state.key) {
    const rank = (r) => state.key === "verdict" ? verdicts.indexOf(r.verdict) : r[state.key];
    found.sort((a, b) => (state.down ? -1 : 1) * (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0));
  }
  return found;
}

function row(r) {
  const listed = document.getElementById(r.case);
  const name = listed ? element("a", { href: "#" + encodeURIComponent(r.case), textContent: r.case }) : r.case;
  const cell = (text, className) => element("td", { className: className || "" }, text);
  return element("tr", {}, cell(element("span", { className: data.styles[r.verdict], textContent: r.verdict })),
    cell(element("span", {}, name, r.reason ? element("small", { textContent: r.reason }) : null), "case"),
    cell(r.tier), cell(r.ulp < 0 ? "" : String(+(+r.ulp).toPrecision(4)), "number"), cell((r.seconds * 1000).toFixed(1), "number"));
}

function draw() {
  const found = matching();
  byId("rows").replaceChildren(...found.slice(0, state.shown).map(row));
  byId("count").textContent = `${found.length} of ${data.cases.length} cases`;
  byId("more").hidden = found.length <= state.shown;
  byId("more").textContent = `show ${Math.min(STEP, found.length - state.shown)} more`;
  for (const chip of byId("verdicts").children)
    chip.setAttribute("aria-pressed", String(state.verdicts.has(chip.dataset.verdict)));
  for (const button of document.querySelectorAll("th button")) {
    const chosen = button.dataset.key === state.key;
    button.parentNode.setAttribute("aria-sort", chosen ? (state.down ? "descending" : "ascending") : "none");
  }
}

function change(id, event, value) {
  byId(id).addEventListener(event, (e) => { state[id] = value(e); state.shown = STEP; draw(); });
}

function options(id) {
  const values = [...new Set(data.cases.map((r) => r[id]))].filter(Boolean).sort();
  byId(id).replaceChildren(element("option", { value: "", textContent: "any" }),
    ...values.map((v) => element("option", { value: v, textContent: v })));
  change(id, "change", (e) => e.target.value);
}

async function start() {
  data = await unpacked("data");
  verdicts = Object.keys(data.styles);
  const expanded = data.passes.flatMap(({ op, form, words, cases }) => cases.map(([parts, dtype, tier, seconds, ulp]) => ({
    case: [op, form, ...parts.map((at) => words[at])].filter(Boolean).join("/"), form, verdict: "PASS",
    dtype: words[dtype], tier: words[tier], seconds, ulp: ulp ?? 0 })));
  data.cases = data.results.concat(expanded);
  const counts = {};
  for (const r of data.cases) counts[r.verdict] = (counts[r.verdict] || 0) + 1;
  for (const verdict of verdicts.filter((v) => counts[v])) {
    const chip = element("button", { className: "chip", type: "button" }, verdict + " ", element("b", { textContent: counts[verdict] }));
    chip.dataset.verdict = verdict;
    chip.addEventListener("click", () => {
      state.verdicts.has(verdict) ? state.verdicts.delete(verdict) : state.verdicts.add(verdict);
      state.shown = STEP; draw();
    });
    byId("verdicts").append(chip);
  }
  options("dtype");
  options("form");
  change("case", "input", (e) => e.target.value);
  byId("clear").addEventListener("click", () => {
    state.verdicts.clear();
    for (const id of ["case", "dtype", "form"]) state[id] = byId(id).value = "";
    state.key = ""; draw();
  });
  byId("more").addEventListener("click", () => { state.shown += STEP; draw(); });
  for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
    state.down = state.key === button.dataset.key ? !state.down : button.dataset.key !== "case";
    state.key = button.dataset.key; draw();
  });
  byId("explorer").hidden = false;
  draw();
}
start();
