"""Makes the shipped catalogs from fact files; refuses to guess a type or a value it was not given.

`python make.py FACTS_DIR` reads `catalog-<version>.json` and `op_specs.json` and writes the compact
forms that `README.md` here describes, and `made_from.sha256`. Directions are the one derived
thing: see `direction`. Catalogs but the newest are stored as what differs from it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from aclnn_bindings.interface import releases
from aclnn_bindings.interface.compact import write
from aclnn_bindings.interface.releases import PHASE_1

HERE = Path(__file__).parent
Facts = dict[str, Any]
DTYPES = {
    "f32": "FLOAT", "f16": "FLOAT16", "f64": "DOUBLE", "bf16": "BFLOAT16",
    "i4": "INT4", "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64",
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "bool": "BOOL",
    "c32": "COMPLEX32", "c64": "COMPLEX64", "c128": "COMPLEX128", "str": "STRING",
    "hif8": "HIFLOAT8", "f8e5m2": "FLOAT8_E5M2", "f8e4m3fn": "FLOAT8_E4M3FN",
    "f8e8m0": "FLOAT8_E8M0", "f6e3m2": "FLOAT6_E3M2", "f6e2m3": "FLOAT6_E2M3",
    "f4e2m1": "FLOAT4_E2M1", "f4e1m2": "FLOAT4_E1M2",
}  # fmt: skip
# Doxygen of CANN 8.1 names some dtype lists by class; the members are those of aclDataType.
CLASSES = {
    "@integral": "UINT8 INT8 INT16 INT32 INT64",
    "@floating": "FLOAT16 FLOAT DOUBLE BFLOAT16",
    "@complex": "COMPLEX64 COMPLEX128",
}
# Names that headers define as macros and the facts list as types (acl/dvpp of CANN 8.1).
SPELLED_BY_MACRO = {"hi_void": "void"}
# The header casts these to int (hi_common_tde.h); the facts list them without the cast.
CAST_TO_INT = ("HI_ERR_TDE_",)
IO = {"in": "i", "attr": "i", "out": "o", "io": "b", "in,out": "b"}


class DtypeSets:
    """The table of distinct dtype lists; a parameter refers to one by index."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def add(self, names: list[str]) -> int:
        text = " ".join(dict.fromkeys(" ".join(CLASSES.get(n, n) for n in names).split()))
        return self.index.setdefault(text, len(self.index))


def direction(function: str, ctype: str, name: str, doc: Facts, spec: str | None) -> str:
    """`i`, `o` or `b` (both): operator documents first, then doxygen where reliable, then names.

    Doxygen of operator headers marks many outputs `[in]`, so only its `[out]` is believed there.
    """
    direction_ = doc.get("dir", {}).get(name)
    is_op = function.endswith(PHASE_1) and function.startswith("acl")
    if spec in IO:
        return IO[spec]
    if direction_ in IO and ("npu" in doc or not is_op or direction_ != "in"):
        return IO[direction_]
    if ctype.endswith("**") or ctype in ("uint64_t *", "size_t *"):
        return "o"
    if is_op and ctype.rstrip("* ").removeprefix("const ") in ("aclTensor", "aclTensorList"):
        return tensor_direction(ctype, name)
    return "i"


def tensor_direction(ctype: str, name: str) -> str:
    """Non-const or named `*Out`/`out*` is an output, `*Ref` is both (88 % right on documents)."""
    if name.endswith("Ref"):
        return "b"
    if name.startswith("grad") and ctype.startswith("const"):
        return "i"
    if name.endswith("Out") or name.startswith("out") or not ctype.startswith("const"):
        return "o"
    return "i"


def with_direction(param: str, flow: str) -> str:
    ctype, name, direction_, dtypes = param.split("|")
    return f"{ctype}|{name}|{flow}{direction_[1:]}|{dtypes}"


def settle_outputs(function: str, row: list[Any]) -> None:
    """Correct what documents leave out: a `*Ref` is written, and an operator writes something."""
    tensors = [i for i, p in enumerate(row) if i > 1 and "aclTensor" in p.split("|")[0]]
    for i in tensors:
        if row[i].split("|")[1].endswith("Ref"):
            row[i] = with_direction(row[i], "b")
    if not tensors or any(row[i].split("|")[2][0] in "ob" for i in tensors):
        return
    last = row[tensors[-1]]
    if function.startswith("aclnnInplace"):
        row[tensors[0]] = with_direction(row[tensors[0]], "b")
    elif not last.startswith("const") or "|metaData|" in last:
        row[tensors[-1]] = with_direction(last, "o")


def spec_names(op: Facts, count: int) -> list[str] | None:
    """The documents' parameter names in order, or None when their number is not the header's."""
    names = [part.split(":")[0] for part in op["sig"].split(", ") if part]
    return names if len(names) == count else None


def compact_function(name: str, raw: Facts, specs: Facts, sets: DtypeSets) -> list[Any]:
    doc, params = raw["doc"], [p for p in raw["params"] if p != ["hi_void", ""]]
    op = specs.get(name.removesuffix(PHASE_1), {}) if name.endswith(PHASE_1) else {}
    names = spec_names(op, len(params) - 2) if op else None
    row: list[str] = []
    for i, (ctype, param) in enumerate(params):
        ctype = ctype.replace("( *", " (*")
        fact = op["p"].get(names[i], {}) if names and i < len(names) else {}
        flow = direction(name, ctype, param, doc, fact.get("io"))
        optional = param.endswith("Optional") or param in doc.get("optional", ()) or "opt" in fact
        optional |= param in LEFT_OUT.get(name.removesuffix(PHASE_1), ())
        dtypes = doc.get("dtypes", {}).get(param) or [DTYPES[d] for d in fact.get("dt", "").split()]
        mark, listed = "?" * bool(optional), sets.add(dtypes) if dtypes else ""
        row.append(f"{ctype}|{param}|{flow}{mark}|{listed}")
    compact = [raw["ret"], raw["header"], *row]
    if name.endswith(PHASE_1):
        settle_outputs(name, compact)
    return compact


def borrow_directions(old: dict[str, list[Any]], new: dict[str, list[Any]]) -> None:
    """Give an older version's operators the directions documented later, where types agree."""
    for name, row in old.items():
        later = new.get(name)
        if later is None or len(later) != len(row) or not name.endswith(PHASE_1):
            continue
        for i in range(2, len(row)):
            mine, theirs = row[i].split("|"), later[i].split("|")
            if mine[0].removeprefix("const ") == theirs[0].removeprefix("const "):
                mine[2] = theirs[2]
                row[i] = "|".join(mine)


def as_cast(values: dict[str, int]) -> dict[str, int]:
    """Values of constants or enum members, with the casts that their headers make."""
    return {
        n: v - (1 << 32) if n.startswith(CAST_TO_INT) and v >> 31 == 1 else v
        for n, v in values.items()
    }


def compact_catalog(version: str, raw: Facts, specs: Facts) -> Facts:
    sets = DtypeSets()
    by_name = sorted(raw["functions"].items())
    functions = {n: compact_function(n, f, specs, sets) for n, f in by_name}
    headers = {h: list(v) for h, v in raw["headers"].items() if v[0] != "aclnnop-level2"}
    for f in raw["functions"].values():
        headers.setdefault(f["header"], ["generated", f["doc"].get("lib", "")])
    marks = {
        mark: [n for n, f in sorted(raw["functions"].items()) if f["doc"].get(mark)]
        for mark in ("deprecated", "generated")
    }
    meta = raw["meta"]
    used = {p[0].rstrip(" *") for f in raw["functions"].values() for p in f["params"]}
    spelled = {name: ctype for name, ctype in SPELLED_BY_MACRO.items() if name in used}
    return {
        "version": version,
        "cann": meta["cann"],
        "sources": meta.get("sources", meta.get("source")),
        "dtype_sets": list(sets.index),
        "headers": dict(sorted(headers.items())),
        "enums": {n: [e["header"], as_cast(e["values"])] for n, e in sorted(raw["enums"].items())},
        "constants": as_cast(dict(sorted(raw["constants"].items()))),
        "typedefs": dict(sorted({**spelled, **raw["typedefs"]}.items())),
        "structs": {
            n: [s["header"], s["kind"], s["size"], s["align"], s["fields"]]
            for n, s in sorted(raw["structs"].items())
        },
        **marks,
        "functions": functions,
    }


def compact_exclusion(entry: Facts, rename: dict[str, str], sets: DtypeSets) -> Facts:
    verb = "not" if "no" in entry else "only"
    dtypes = [DTYPES[d] for d in entry["no" if verb == "not" else "only"].split()]
    out: Facts = {"products": entry["prod"], verb: sets.add(dtypes)}
    if on := [rename[p] for p in entry.get("on", ()) if p in rename]:
        out["on"] = on
    return out


def compact_param(fact: Facts, rename: dict[str, str], sets: DtypeSets) -> Facts:
    out: Facts = {}
    if fact.get("dt"):
        out["dtypes"] = sets.add([DTYPES[d] for d in fact["dt"].split()])
    for source, key in (("dt_as", "dtype_as"), ("d_as", "rank_as")):
        if fact.get(source) in rename:
            out[key] = rename[fact[source]]
    for source, key in (("d", "rank"), ("fmt", "formats"), ("nc", "strided"), ("empty", "empty")):
        if source in fact:
            out[key] = fact[source]
    if out.get("rank", [0])[0] in NO_LEAST:
        out["rank"] = [0, 8]
    if "opt" in fact:
        out["optional"] = 1
    return out


def compact_spec(op: Facts, header_names: list[str], sets: DtypeSets) -> Facts:
    """One operator of the documents, its parameters under the names that the header gives them."""
    names = spec_names(op, len(header_names)) or list(op["p"])
    same = len(names) == len(header_names) and spec_names(op, len(header_names))
    rename = (
        dict(zip(names, header_names, strict=True))
        if same
        else {n: n for n in names if n in header_names}
    )
    params = {rename[n]: compact_param(f, rename, sets) for n, f in op["p"].items() if n in rename}
    out: Facts = {"products": op.get("prod", "")}
    out["params"] = {n: params[n] for n in header_names if params.get(n)}
    if op.get("excl"):
        out["exclusions"] = [compact_exclusion(e, rename, sets) for e in op["excl"]]
    if op.get("nulls"):
        out["nulls"] = [rename[n] for n in op["nulls"] if n in rename]
    errors: dict[str, list[str]] = {}
    for code, reasons in op.get("err", ()):
        errors[code] = sorted({*errors.get(code, ()), *filter(None, reasons.split("/"))})
    out["errors"] = errors
    if op.get("det"):
        out["deterministic"] = int(op["det"] == "default")
    out["complete"] = op["ok"]
    return out


def spec_from_tables(doc: Facts, header_names: list[str], sets: DtypeSets) -> Facts:
    """One operator known only from its document's parameter table, as far as names agree."""
    params: dict[str, Facts] = {}
    for source, key in (("rank", "rank"), ("strided", "strided")):
        for param, value in doc.get(source, {}).items():
            params.setdefault(param, {})[key] = value
            if key == "rank" and value[0] in NO_LEAST:
                params[param][key] = [0, 8]
    for param, names in doc.get("dtypes", {}).items():
        params.setdefault(param, {})["dtypes"] = sets.add(names)
    for param, formats in doc.get("formats", {}).items():
        params.setdefault(param, {})["formats"] = " ".join(formats)
    params = {name: params[name] for name in header_names if name in params}
    return {"products": " ".join(doc.get("npu", ())), "params": params, "errors": {}, "complete": 0}


# Bounds that were read as the least rank of a tensor: 8 is the most that there is (documents say
# "8" for "at most 8"), 512 a size.
NO_LEAST = (8, 512)
# Parameters that a document refuses only when all of them are null.
ONE_OF = {"aclnnClampTensor": ("clipValueMin", "clipValueMax")}
# What clients pass and CANN takes, casting it, though the parameter's table lists less: index
# outputs of either width, integers where infinities are asked for (torch's isfinite of integers),
# integers that a floating function promotes. Clients: op-plugin's calls of these operators.
INTEGERS = "i8 i16 i32 i64 u8"
WIDER: dict[str, dict[str, str]] = {
    "aclnnMinDim": {"indices": "i64"},
    "aclnnMaxDim": {"indices": "i64"},
    "aclnnIsFinite": {"self": f"{INTEGERS} bool"},
    "aclnnIsPosInf": {"self": f"{INTEGERS} bool"},
    "aclnnIsNegInf": {"self": f"{INTEGERS} bool"},
    "aclnnSigmoid": {"self": f"{INTEGERS} bool f64 c64 c128", "out": "f64 c64 c128"},
    "aclnnLinspace": {"out": "i64"},
    "aclnnArange": {"out": "i8 i16 u8 bool"},
    "aclnnChannelShuffle": {"self": "bf16"},
    "aclnnSign": {"self": "i8 i16 u8", "result": "i8 i16 u8"},
    "aclnnPowScalarTensor": {"exponent": "bool", "out": "bool"},
    "aclnnGatherV3": {"self": "bf16"},
    # Scales of four-bit weights are packed: torch has int64 for them, the tables floats.
    "aclnnGroupedMatmulSwigluQuantWeightNZ": {"weightScale": "u64 i64"},
    "aclnnGroupedMatmulSwigluQuantWeightNzV2": {"weightScale": "i64"},
    "aclnnGroupedMatmulSwigluQuantV2": {"weightScale": "i64"},
    # torch has int64 for the states of generators.
    "aclnnInplaceUniformTensor": {"seedTensor": "i64", "offsetTensor": "i64"},
}


# Parameters that clients leave out though no document calls them optional: torch_npu's rotary
# embedding has no matrix unless the mode is "interleave".
LEFT_OUT = {"aclnnRotaryPositionEmbeddingV2": ("rotate",)}
# Operators of CANN 8.1, which knew no Ascend950, that newer documents name for it alone; torch_npu
# calls them on every product for torch.normal.
OLDER = ("910b", "A3")
CALLED_ON_OLDER = frozenset({
    "aclnnNormalFloatFloat", "aclnnNormalFloatTensor", "aclnnNormalTensorFloat",
    "aclnnNormalTensorTensor",
})  # fmt: skip
# Types that only the newest product has, and that its clients copy (op-plugin's tests of float8).
NEWEST = {"aclnnInplaceCopy": "hif8 f8e5m2 f8e4m3fn"}


def settle_spec(name: str, op: Facts) -> Facts:
    """The facts of one operator with what documents say in conditions read as what it is."""
    op = {**op, "p": {param: dict(fact) for param, fact in op["p"].items()}}
    for param, added in WIDER.get(name, {}).items():
        widen(op["p"][param], added)
    if name in NEWEST:
        for fact in op["p"].values():
            widen(fact, NEWEST[name])
        older = " ".join(p for p in op["prod"].split() if p != "950")
        op["excl"] = [*op.get("excl", ()), {"prod": older, "no": NEWEST[name]}]
    if name in CALLED_ON_OLDER:
        op["prod"] = " ".join(dict.fromkeys([*op["prod"].split(), *OLDER]))
    op["nulls"] = required_of(op)
    if op.get("excl"):
        op["excl"] = [*op["excl"], *listed_later(op)]
        op["excl"] = settle_exclusions(op)
    return op


def settle_tables(functions: Facts, specs: Facts) -> None:
    """What clients pass, for operators that are known from their documents' tables alone."""
    for name, parameters in WIDER.items():
        tables = functions.get(name + PHASE_1, {}).get("doc", {}).get("dtypes", {})
        for param, added in parameters.items() if name not in specs else ():
            if param in tables:
                new = [DTYPES[d] for d in added.split()]
                tables[param] = list(dict.fromkeys([*tables[param], *new]))


def widen(fact: Facts, added: str) -> None:
    fact["dt"] = " ".join(dict.fromkeys(f"{fact['dt']} {added}".split()))


def required_of(op: Facts) -> list[str]:
    """Parameters whose null is an error: a document's "optional" outweighs its list of errors.

    The list names everything that a mode may need; the first parameter is never optional.
    """
    first = next(iter(op["p"]), None)
    optional = {n for n, f in op["p"].items() if "opt" in f and n != first}
    optional |= {n for n in op.get("nulls") or () if n.endswith("Optional")}
    return [n for n in op.get("nulls") or () if n not in optional]


def settle_exclusions(op: Facts) -> list[Facts]:
    """Drop the `only` rules that state a condition; join those of one product that name nothing.

    "When x is BFLOAT16, scalar is FLOAT" and "on these products BFLOAT16, too" were read as
    `only`: a product that has FLOAT or BFLOAT16 has FLOAT16, so that a rule which keeps the one
    and drops the other restricts nothing, but may add. Rules without `on` speak of one parameter
    each, in order, so that what any of them lists is kept.
    """
    tensors = tensor_dtypes(op)
    settled: list[Facts] = []
    plain: dict[str, list[str]] = {}
    for rule in op["excl"]:
        if "only" not in rule:
            settled.append(rule)
        elif conditional(tensors, rule):
            settled.extend(added_dtypes(op, rule))
        elif "on" in rule:
            on = [p for p in rule["on"] if speaks_of(rule, tensors.get(p, []))]
            settled += [{**rule, "on": on}] if on else []
        else:
            plain.setdefault(rule["prod"], []).extend(rule["only"].split())
    for products, dtypes in plain.items():
        settled.append({"prod": products, "only": " ".join(dict.fromkeys(dtypes))})
    return settled


def listed_later(op: Facts) -> list[Facts]:
    """Take bfloat16 into lists where only a product's own list has it; the others go without it.

    Of parameters that have float16 and nothing that the product's list lacks: positions and
    results of their own dtype are none of these.
    """
    rules: list[Facts] = []
    tensors = tensor_dtypes(op)
    local = [r for r in op["excl"] if "only" in r and "on" not in r and not conditional(tensors, r)]
    with_own = {p for r in local for p in r["prod"].split()}
    for rule in local:
        for param, dtypes in tensors.items():
            dtypes_left = set(rule["only"].split())
            if "f16" not in dtypes or "bf16" in dtypes or dtypes_left - set(dtypes) != {"bf16"}:
                continue
            widen(op["p"][param], "bf16")
            if others := [p for p in op["prod"].split() if p not in with_own]:
                rules.append({"prod": " ".join(others), "no": "bf16", "on": [param]})
    return rules


def tensor_dtypes(op: Facts) -> dict[str, list[str]]:
    """Tensor parameters and the dtypes of each."""
    types = dict(part.split(":") for part in op["sig"].split(", ") if part)
    return {
        p: f["dt"].split()
        for p, f in op["p"].items()
        if f.get("dt") and types.get(p) in ("T", "TL")
    }


def speaks_of(rule: Facts, dtypes: list[str]) -> bool:
    """Whether a rule leaves a parameter something; one of integers leaves scales alone."""
    dtypes_left, floats = set(rule["only"].split()), {"f16", "f32", "bf16"}
    return bool(dtypes_left & set(dtypes)) and (
        bool(dtypes_left & floats) or not floats & set(dtypes)
    )


def conditional(tensors: dict[str, list[str]], rule: Facts) -> bool:
    """Whether an `only` rule can't be the list of what a product has; see `settle_exclusions`."""
    dtypes_left = set(rule["only"].split())
    if "mode" in rule.get("on", ()):
        return True  # of one mode of several
    named = [tensors[p] for p in rule.get("on", tensors) if p in tensors]
    floats = dtypes_left & {"f32", "bf16", "f64", "c64", "c128"}
    return any(floats and "f16" in dtypes and "f16" not in dtypes_left for dtypes in named)


def added_dtypes(op: Facts, rule: Facts) -> list[Facts]:
    """Take a rule as "also": its dtypes join the lists, the older products go without them."""
    rules = []
    newer = {"A3", "910b", "950"}  # documents state them together, or leave one out
    others = [p for p in op.get("prod", "").split() if p not in newer]
    for param in rule.get("on", ()):
        fact = op["p"].get(param, {})
        new = [d for d in rule["only"].split() if d not in fact.get("dt", "").split()]
        if not fact.get("dt") or "bf16" not in new:
            continue
        widen(fact, " ".join(new))
        if others:
            rules.append({"prod": " ".join(others), "no": " ".join(new), "on": [param]})
    return rules


def compact_specs(specs: Facts, version: str, newest: Facts, soc: Facts) -> Facts:
    sets = DtypeSets()
    products = {
        op: " ".join(p for p, yes in entry["support"].items() if yes)
        for names, entry in soc.items()
        for op in names.split("&")
    }
    ops: Facts = {}
    for name, raw in sorted(newest["functions"].items()):
        op = name.removesuffix(PHASE_1)
        if not name.endswith(PHASE_1) or op not in newest["functions"]:
            continue
        header_names = [p[1] for p in raw["params"][:-2]]
        if op in specs:
            ops[op] = compact_spec(specs[op], header_names, sets)
            for name in ONE_OF.get(op, ()):
                ops[op]["nulls"].remove(name)
        elif raw["doc"].get("dtypes"):
            ops[op] = spec_from_tables(raw["doc"], header_names, sets)
        else:
            continue
        ops[op]["products"] = ops[op]["products"] or products.get(op, "")
    return {"format": 1, "version": version, "dtype_sets": list(sets.index), "ops": ops}


def digest(path: Path) -> str:
    """Of a text, whatever its line ends."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def record(facts: Path, used: list[str], outputs: list[str]) -> None:
    """Note what made the catalogs, as `sha256sum` does, so that a stale or edited one shows."""
    paths = {"make.py": Path(__file__), **{name: HERE / name for name in sorted(outputs)}}
    paths |= {f"facts/{name}": facts / name for name in sorted(used)}
    lines = [f"{digest(path)}  {name}\n" for name, path in paths.items()]
    (HERE / "made_from.sha256").write_text("".join(lines), encoding="utf-8")


def main(facts: Path) -> None:
    used: list[str] = []

    def read(name: str) -> Any:
        used.append(name)
        return json.loads((facts / name).read_text(encoding="utf-8"))

    specs = {name: settle_spec(name, op) for name, op in read("op_specs.json")["ops"].items()}
    raw = {p.stem.removeprefix("catalog-"): read(p.name) for p in facts.glob("catalog-*.json")}
    for facts_of in raw.values():
        settle_tables(facts_of["functions"], specs)
    compact = {v: compact_catalog(v, facts_of, specs) for v, facts_of in raw.items()}
    # The operator documents are those of the catalog with most operators: the newest.
    newest = max(compact, key=lambda v: len(compact[v]["functions"]))
    for version, data in compact.items():
        if version != newest:
            borrow_directions(data["functions"], compact[newest]["functions"])
            data["lists"] = "comments"  # of headers: no documents of it are at hand
    for version, data in compact.items():
        base = compact[newest]
        stored = data if version == newest else releases.difference(base, data, newest, exact=True)
        write(HERE / f"{version}.json", stored)
    support = read("soc_support.json")
    write(HERE / "op_specs.json", compact_specs(specs, newest, raw[newest], support))
    record(facts, used, [*(f"{version}.json" for version in compact), "op_specs.json"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
