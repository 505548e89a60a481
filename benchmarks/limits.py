"""What documents, the simulator, check's cases and mindtorch say of operators' dtypes, by product.

Usage: python benchmarks/limits.py [--products 910b,310p] [--only PATTERN] [--json FILE] [--list]

Takes a call of each operator that check tries, exchanges the dtype of one tensor (and then of all
tensors that share it), and asks the simulator of each product. A difference is a parameter of an
operator where two of the four do not agree; prints them counted by kind, `--list` each of them.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

PROFILES = {
    "910b": "Ascend910B2",
    "A3": "Ascend910_9392",
    "910": "Ascend910A",
    "310p": "Ascend310P3",
    "310b": "Ascend310B1",
    "950": "Ascend950PR_9599",
}
TRIED = (
    "FLOAT",
    "FLOAT16",
    "BFLOAT16",
    "INT8",
    "UINT8",
    "INT16",
    "INT32",
    "INT64",
    "BOOL",
    "DOUBLE",
    "COMPLEX64",
)
SAMPLES = 4  # calls of an operator that are tried as a start
KINDS = {
    "undocumented": "the simulator takes a dtype that no document lists",
    "refused": "a document lists a dtype that the simulator refuses in this call",
    "untried": "a document lists a dtype of the main tensor that check never tries",
    "unlisted": "check tries a dtype of the main tensor that no document lists",
    "uncalled": "a document lists a dtype of the main tensor that mindtorch's row does not pass",
}


class Calls:
    """Asks one product's simulator. Every address is null, which stops a kernel before it runs."""

    def __init__(self, cann):
        self.cann, self.stream = cann, cann.runtime.current_stream()

    def takes(self, op, values):
        """Whether phase 1 accepts the call; what its kernel makes of the data is of no interest."""
        from aclnn_bindings.errors import BindingError
        from aclnn_bindings.runtime.status import AclError

        count = sum(
            len(v) if isinstance(v, tuple) and _is_tensor(v[0]) else _is_tensor(v)
            for v in values
            if v != ()
        )
        try:
            self.cann.ops[op].plan(*values).launch(self.stream, [0] * count)
        except AclError as error:
            return error.code >= 500000 and error.code < 560000
        except BindingError:
            return False
        finally:
            with suppress(AclError):
                self.stream.synchronize()
        return True


def _is_tensor(value):
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _calls(op):
    """Argument lists of the operator's samples, tensors as specs."""
    from mindtorch_npu.conformance.cases.case import Case
    from mindtorch_npu.conformance.cases.recipe import Slot, recipe
    from mindtorch_npu.conformance.operators.placing import FORMATS, ResultSlot

    from aclnn_bindings.call.arrays import acl_name
    from aclnn_bindings.call.specs import TensorSpec

    def spec(name, array, dtype=""):
        form = op.format(name) or FORMATS.get(array.ndim, "ND")
        return TensorSpec.of(array.shape, dtype or acl_name(array.dtype), form)

    def value(name, given, golden):
        if isinstance(given, ResultSlot):
            return spec(name, golden.native[given.index], given.dtype)
        if isinstance(given, Slot):
            return spec(name, given.array)
        if isinstance(given, list):
            return tuple(value(name, one, golden) for one in given)
        return given

    for number, sample in enumerate(op.samples()[:SAMPLES]):
        if sample.error:
            continue
        try:
            case = recipe(op, Case(op.name, "functional", number), 0)
            golden = op.golden(case, op.requirement(""))
            given = op.values(case, golden)
            yield [value(p.name, given[p.name], golden) for p in op.signature.params]
        except Exception:
            continue


def _exchanged(values, at, dtype, together):
    """The call with the tensor at `at`, and those of its dtype, in another dtype."""
    from dataclasses import replace

    old = _dtype_of(values[at])

    def change(i, value):
        if isinstance(value, tuple):
            return tuple(change(i, one) for one in value)
        chosen = i == at or (together and _is_tensor(value) and value.dtype == old)
        return replace(value, dtype=dtype) if chosen and _is_tensor(value) else value

    return [change(i, value) for i, value in enumerate(values)]


def _dtype_of(value):
    return (value[0] if isinstance(value, tuple) and value else value).dtype


def _tensors(values):
    for at, value in enumerate(values):
        if _is_tensor(value) or (isinstance(value, tuple) and value and _is_tensor(value[0])):
            yield at


def _row(calls, op, product, cann):
    """Per tensor parameter: documented, taken, tried by check, passed by mindtorch."""
    from mindtorch_npu.conformance.cases.case import ACL_DTYPES

    from aclnn_bindings.install.products import support

    documented = support(op.name, product)
    if documented is None or not documented.on(product):
        return {}
    start = next((v for v in _calls(op) if calls.takes(op.name, v)), None)
    if start is None:
        return {"": {"start": False}}
    names = {numpy: acl for acl, numpy in ACL_DTYPES.items()}
    claims = [names[d] for d in op.claims(cann.declarations, cann.soc_name()).dtypes if d in names]
    rows = {}
    for at in _tensors(start):
        name = op.signature.params[at].name
        listed = set(documented.dtypes.get(name, ()))
        if not listed:
            continue
        taken = {d for d in sorted(listed | set(TRIED)) if _taken(calls, op.name, start, at, d)}
        rows[name] = {"documented": sorted(listed), "simulator": sorted(taken)}
        if at == 0:
            rows[name]["check"] = sorted(claims)
            if hasattr(op, "asked"):
                rows[name]["mindtorch"] = sorted(d for d in listed if _passed(op, name, d))
    return rows


def _passed(op, name, dtype):
    """Whether mindtorch's row calls the operator with its main tensor in `dtype`, uncast."""
    from dataclasses import replace

    from mindtorch_npu.conformance.cases.case import ACL_DTYPES
    from mindtorch_npu.conformance.cases.inputs import main_dtype, tensors_of

    from mindtorch.ops.samples import Sample

    if dtype not in ACL_DTYPES:
        return False
    for sample in op.samples()[:SAMPLES]:
        main = main_dtype(tensors_of(sample))

        def change(arg, main=main):
            return replace(arg, dtype=ACL_DTYPES[dtype]) if arg.dtype == main else arg

        try:
            args, kwargs = sample.map(change)
            asked = op.asked(Sample(tuple(args), kwargs))
        except Exception:
            continue
        if asked and _is_tensor(asked[name]) and asked[name].dtype == dtype:
            return True
    return False


def _taken(calls, op, start, at, dtype):
    return any(calls.takes(op, _exchanged(start, at, dtype, together)) for together in (0, 1))


def one_product(product, only):
    """The rows of every operator of the install whose name holds `only`."""
    from mindtorch_npu.conformance.operators.find import subject

    import aclnn_bindings

    cann = aclnn_bindings.open(simulator=True)
    calls, rows = Calls(cann), {}
    for name in sorted(cann.declarations.ops):
        if only.lower() not in name.lower():
            continue
        try:
            rows[name] = _row(calls, subject(name, cann.declarations), product, cann)
        except Exception as error:
            rows[name] = {"": {"start": False, "why": f"{type(error).__name__}: {error}"[:200]}}
    return rows


def differences(rows):
    """(kind, operator, parameter, dtypes) of a product."""
    for op, params in rows.items():
        for name, facts in params.items():
            if "documented" not in facts:
                continue
            listed, taken = set(facts["documented"]), set(facts["simulator"])
            yield "undocumented", op, name, taken - listed
            yield "refused", op, name, listed - taken
            if "check" in facts:
                tried = set(facts["check"])
                yield "untried", op, name, listed - tried
                yield "unlisted", op, name, tried - listed
            if "mindtorch" in facts:
                yield "uncalled", op, name, listed - set(facts["mindtorch"])


def main():
    """Ask each product's simulator in a process of its own, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", default="910b,310p,950")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(one_product(options.child, options.only), sys.stdout)
        return
    every = {}
    for product in options.products.split(","):
        command = [sys.executable, __file__, "--child", product, "--only", options.only]
        environ = {**os.environ, "ACLSIM_SOC": PROFILES[product]}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        every[product] = json.loads(done.stdout)
        _print(product, every[product], options.list)
    if options.json:
        options.json.write_text(json.dumps(every, indent=1))


def _print(product, rows, each):
    params = [f for p in rows.values() for f in p.values() if "documented" in f]
    lost = [op for op, p in rows.items() if "" in p]
    print(
        f"{product}: {len(params)} tensors of {sum(bool(p) for p in rows.values())} operators, "
        f"{len(lost)} without a call to start from"
    )
    counts, by_dtype = Counter(), defaultdict(Counter)
    for kind, op, name, dtypes in differences(rows):
        counts[kind] += bool(dtypes)
        by_dtype[kind].update(dtypes)
        if dtypes and each:
            print(f"  {kind} {op} {name}: {' '.join(sorted(dtypes))}")
    for kind, text in KINDS.items():
        most = ", ".join(f"{d} {n}" for d, n in by_dtype[kind].most_common(5))
        print(f"  {counts[kind]:5} {text}" + (f" ({most})" if most else ""))


if __name__ == "__main__":
    main()
