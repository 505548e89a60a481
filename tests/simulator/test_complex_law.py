"""No operator loses imaginary parts: a complex result depends on those that it is given."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_child import Fuzzer

import aclnn_bindings
from aclnn_bindings.errors import ArgumentError
from aclnn_bindings.interface.signature import Direction, Kind
from aclnn_bindings.runtime.status import AclError

ROUNDS = 40  # draws of arguments, of which phase 1 takes some
# Whether a value is zero, or equal to another, hangs on its real part alone nearly always.
OF_TRUTH = ("Eq", "Ne", "Logical")
# Gradients of paddings read the padded tensor's shape alone.
OF_SHAPE = ("Pad1dBackward", "Pad2dBackward", "Pad3dBackward")
Call = Callable[[Sequence[Any]], None]


def takes_complex() -> list[str]:
    """Operators whose documents list complex types."""
    path = Path(aclnn_bindings.__file__).parent / "catalogs" / "op_specs.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    sets = [i for i, names in enumerate(facts["dtype_sets"]) if "COMPLEX64" in names]
    return sorted(
        name
        for name, spec in facts["ops"].items()
        if any(param.get("dtypes") in sets for param in spec["params"].values())
    )


class ComplexFuzzer(Fuzzer):
    """Random arguments, mostly complex tensors of one shape."""

    def begin(self) -> None:
        r = self.random
        self.shape = tuple(r.choice([2, 3, 4]) for _ in range(r.choice([1, 2, 2, 3, 4])))
        self.disagree = r.choice([0.0, 0.0, 0.2])

    def tensor(self) -> Any:
        r = self.random
        other = r.random() < self.disagree
        shape = r.choice([(), self.shape[1:], (3,)]) if other else self.shape
        whole = np.random.default_rng(r.randrange(1 << 30))
        if r.random() < self.disagree:
            return self.cann.tensor(whole.integers(0, 2, shape).astype(r.choice(["i8", "i4", "?"])))
        parts = whole.normal(size=(2, *shape))
        return self.cann.tensor((parts[0] + 1j * parts[1]).astype(np.complex64))


def lost(cann: Any, call: Call, tensors: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    """Which complex inputs the call reads, and those whose imaginary parts change no result."""

    def after(given: Sequence[np.ndarray]) -> list[np.ndarray]:
        made = [cann.tensor(array.copy()) for array in given]
        call(made)
        return [tensor.numpy() for tensor in made]

    results = after(tensors)
    pairs = list(zip(tensors, results, strict=True))
    changed = [i for i, (a, b) in enumerate(pairs) if a.tobytes() != b.tobytes()]
    told = [i for i in changed if np.iscomplexobj(results[i]) and np.isfinite(results[i]).all()]
    inputs = [i for i, a in enumerate(tensors) if np.iscomplexobj(a) and i not in changed]
    if not told or any(not np.abs(results[i]).any() for i in told):
        return [], []
    same = []
    for i in inputs:
        real = [a.real.astype(np.complex64) if k == i else a for k, a in enumerate(tensors)]
        again = after(real)
        if all(np.array_equal(again[k], results[k]) for k in told):
            same.append(i)
    return inputs, same


def tried(cann: Any, name: str) -> tuple[dict[str, int], dict[str, int]]:
    """How often each input was judged, and how often its imaginary part was lost."""
    fuzzer = ComplexFuzzer(cann, 0)
    fuzzer.random.seed(name)
    op = cann.op(name)
    judged: dict[str, int] = {}
    bad: dict[str, int] = {}
    for _ in range(ROUNDS):
        fuzzer.begin()
        values = [fuzzer.value(p) for p in op.params]
        at = [i for i, p in enumerate(op.params) if p.kind is Kind.TENSOR and values[i] is not None]

        def call(tensors: Sequence[Any], values: list[Any] = values, at: list[int] = at) -> None:
            mine = list(values)
            for i, tensor in zip(at, tensors, strict=True):
                mine[i] = tensor
            op(*mine)
            cann.runtime.current_stream().synchronize()

        try:
            inputs, same = lost(cann, call, [values[i].numpy() for i in at])
        except (AclError, ArgumentError):
            continue
        read = {k for k, i in enumerate(at) if op.params[i].direction is not Direction.OUT}
        for i in read.intersection(inputs):
            judged[op.params[at[i]].name] = judged.get(op.params[at[i]].name, 0) + 1
        for i in read.intersection(same):
            bad[op.params[at[i]].name] = bad.get(op.params[at[i]].name, 0) + 1
    return judged, bad


def test_no_operator_loses_imaginary_parts() -> None:
    cann = aclnn_bindings.open(simulator=True)
    seen, losers = 0, []
    for name in takes_complex():
        if not cann.has_op(name) or any(part in name for part in (*OF_TRUTH, *OF_SHAPE)):
            continue
        judged, bad = tried(cann, name)
        seen += bool(judged)
        # A factor of zero, one element or an empty triangle may lose one; not every call does.
        losers += [(name, k) for k, count in bad.items() if count == judged[k] and count > 1]
    assert not losers
    assert seen > 30


def test_a_lost_part_is_found() -> None:
    cann = aclnn_bindings.open(simulator=True)
    x = (np.arange(1, 5) + 1j).astype(np.complex64)

    def keeps(tensors: Sequence[Any]) -> None:
        cann.ops.aclnnMul(self=tensors[0], other=tensors[1], out=tensors[2])

    def loses(tensors: Sequence[Any]) -> None:
        real = cann.tensor(tensors[0].numpy().real.astype(np.complex64))
        cann.ops.aclnnMul(self=real, other=tensors[1], out=tensors[2])

    assert lost(cann, keeps, [x, x, np.zeros_like(x)]) == ([0, 1], [])
    assert lost(cann, loses, [x, x, np.zeros_like(x)]) == ([0, 1], [0])
