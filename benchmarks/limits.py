"""What documents, the simulator, check's cases and mindtorch say of operators' limits, by product.

Usage: python benchmarks/limits.py [--products 910b,310p] [--only PATTERN] [--json FILE] [--list]
       [--aspects dtype,rank,format,length]

Takes a call of each operator that check tries, exchanges the dtype, rank or format of one tensor
(and then of all tensors that share it) or the length of a list, and asks the simulator of each
product. A difference is a parameter of an operator where two of the four do not agree; prints them
counted by kind, `--list` each of them. A call in another rank may be refused for its sizes, so that
refusals of ranks are hints. No document states lengths of lists as data.
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
FORMATS = ("ND", "NCHW", "NHWC", "NCL", "NCDHW", "NDHWC", "FRACTAL_NZ")
BASE = frozenset(FORMATS) - {"FRACTAL_NZ"}  # they name the same bytes, so that ND means all of them
RANKS = range(9)  # a tensor has 8 dimensions at most (aclCreateTensor document)
LENGTHS = (1, 2, 49, 50, 51, 256, 257)  # where lists were seen to be cut (field/limits.json)
ASPECTS = ("dtype", "rank", "format", "length")
SAMPLES = 4  # calls of an operator that are tried as a start
KINDS = {
    "undocumented": "the simulator takes a {} that no document lists",
    "refused": "a document lists a {} that the simulator refuses in this call",
    "untried": "a document lists a {} of the main tensor that check never tries",
    "unlisted": "check tries a {} of the main tensor that no document lists",
    "uncalled": "a document lists a {} of the main tensor that mindtorch's row does not pass",
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


def _exchanged(values, at, aspect, wanted, together):
    """The call with the tensor at `at`, and those like it, of another dtype, rank or format."""
    old = _known(values[at], aspect)

    def change(i, value):
        if isinstance(value, tuple):
            return tuple(change(i, one) for one in value)
        chosen = i == at or (together and _is_tensor(value) and _known(value, aspect) == old)
        return CHANGES[aspect](value, wanted) if chosen and _is_tensor(value) else value

    if aspect == "length":
        return [_of_length(v, wanted) if isinstance(v, tuple) else v for v in values]
    return [change(i, value) for i, value in enumerate(values)]


def _of_length(members, length):
    return (members * length)[:length] if members else members


def _in_dtype(spec, dtype):
    from dataclasses import replace

    return replace(spec, dtype=dtype)


def _in_rank(spec, rank):
    """A tensor of as many elements in `rank` dimensions: ones before, or leading ones joined."""
    from math import prod

    from aclnn_bindings.call.specs import TensorSpec

    shape = spec.shape
    if rank >= len(shape):
        shape = (1,) * (rank - len(shape)) + shape
    elif rank:
        shape = (prod(shape[: len(shape) - rank + 1]), *shape[len(shape) - rank + 1 :])
    else:
        shape = ()
    return TensorSpec.of(shape, spec.dtype, "ND" if spec.format != "FRACTAL_NZ" else spec.format)


def _in_format(spec, form):
    from dataclasses import replace

    return replace(spec, format=form)


CHANGES = {"dtype": _in_dtype, "rank": _in_rank, "format": _in_format}


def _known(value, aspect):
    """What a tensor, or the first of a list, is in one aspect."""
    first = value[0] if isinstance(value, tuple) and value else value
    return {"dtype": first.dtype, "rank": len(first.shape), "format": first.format}.get(aspect)


def _tensors(values):
    for at, value in enumerate(values):
        if _is_tensor(value) or (isinstance(value, tuple) and value and _is_tensor(value[0])):
            yield at


def _row(calls, op, product, cann, aspects):
    """Per tensor parameter and aspect: documented, taken, tried by check, passed by mindtorch."""
    from aclnn_bindings.install.products import support

    document = support(op.name, product)
    if document is None or not document.on(product):
        return {}
    start = next((v for v in _calls(op) if calls.takes(op.name, v)), None)
    if start is None:
        return {"": {"start": False}}
    rows = {}
    for at in _tensors(start):
        name = op.signature.params[at].name
        for aspect in aspects:
            listed = _listed(document, name, aspect)
            if not listed and not (aspect == "length" and isinstance(start[at], tuple)):
                continue
            tried = _candidates(aspect, listed)
            accepted = [v for v in tried if _taken(calls, op.name, start, at, aspect, v)]
            facts = {"documented": sorted(listed), "simulator": accepted}
            if at == 0:
                facts |= _main(op, cann, name, aspect, listed)
            rows.setdefault(name, {})[aspect] = facts
    return rows


def _listed(document, name, aspect):
    if aspect == "rank":
        low, high = document.ranks.get(name, (0, -1))
        return set(range(low, high + 1))
    lists = {"dtype": document.dtypes, "format": document.formats}.get(aspect, {})
    return set(lists.get(name, ()))


def _candidates(aspect, listed):
    more = {"dtype": TRIED, "rank": RANKS, "format": FORMATS, "length": LENGTHS}[aspect]
    return sorted(listed | set(more))


def _main(op, cann, name, aspect, listed):
    """What check's samples and mindtorch's row do with the main tensor."""
    from mindtorch_npu.conformance.cases.case import ACL_DTYPES

    if aspect == "dtype":
        names = {numpy: acl for acl, numpy in ACL_DTYPES.items()}
        claims = op.claims(cann.declarations, cann.soc_name()).dtypes
        facts = {"check": sorted(names[d] for d in claims if d in names)}
        if hasattr(op, "asked"):
            facts["mindtorch"] = sorted(d for d in listed if _passed(op, name, d))
        return facts
    if aspect == "rank":
        return {"check": sorted({len(v[0].shape) for v in _calls(op) if _is_tensor(v[0])})}
    return {}


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


def _taken(calls, op, start, at, aspect, wanted):
    return any(
        calls.takes(op, _exchanged(start, at, aspect, wanted, together)) for together in (0, 1)
    )


def one_product(product, only, aspects):
    """The rows of every operator of the install whose name holds `only`."""
    from mindtorch_npu.conformance.operators.find import subject

    import aclnn_bindings

    cann = aclnn_bindings.open(simulator=True)
    calls, rows = Calls(cann), {}
    for name in sorted(cann.declarations.ops):
        if only.lower() not in name.lower():
            continue
        try:
            rows[name] = _row(calls, subject(name, cann.declarations), product, cann, aspects)
        except Exception as error:
            rows[name] = {"": {"start": False, "why": f"{type(error).__name__}: {error}"[:200]}}
    return rows


def differences(rows, aspect):
    """(kind, operator, parameter, values) of a product."""
    for op, params in rows.items():
        for name, aspects in params.items():
            if aspect not in aspects:
                continue
            facts = aspects[aspect]
            listed, taken = set(facts["documented"]), set(facts["simulator"])
            if aspect == "format" and "ND" in listed:
                taken -= BASE - listed
            if aspect != "length":
                yield "undocumented", op, name, taken - listed
            yield "refused", op, name, (listed or set(LENGTHS)) - taken
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
    parser.add_argument("--aspects", default=",".join(ASPECTS))
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        rows = one_product(options.child, options.only, options.aspects.split(","))
        json.dump(rows, sys.stdout)
        return
    every = {}
    for product in options.products.split(","):
        command = [sys.executable, __file__, "--child", product, "--only", options.only,
                   "--aspects", options.aspects]  # fmt: skip
        environ = {**os.environ, "ACLSIM_SOC": PROFILES[product]}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        every[product] = json.loads(done.stdout)
        _print(product, every[product], options.aspects.split(","), options.list)
    if options.json:
        options.json.write_text(json.dumps(every, indent=1))


def _print(product, rows, aspects, each):
    tensors = [facts for params in rows.values() for name, facts in params.items() if name]
    lost = [op for op, params in rows.items() if "" in params]
    print(
        f"{product}: {len(tensors)} tensors of {sum(bool(p) for p in rows.values())} operators, "
        f"{len(lost)} without a call to start from"
    )
    for aspect in aspects:
        counts, values = Counter(), defaultdict(Counter)
        for kind, op, name, which in differences(rows, aspect):
            counts[kind] += bool(which)
            values[kind].update(which)
            if which and each:
                print(f"  {aspect} {kind} {op} {name}: {' '.join(map(str, sorted(which)))}")
        for kind, text in KINDS.items():
            most = ", ".join(f"{v} {n}" for v, n in values[kind].most_common(5))
            if counts[kind]:
                print(f"  {counts[kind]:5} {text.format(aspect)} ({most})")


if __name__ == "__main__":
    main()
