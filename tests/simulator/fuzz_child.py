"""Calls operators of an install with random arguments; dies where a kernel crashes.

fuzz_child.py SEED ROUNDS [--first NAME] [--only NAME] [--home FOLDER]: prints each name before its
calls, then "done".
"""

import argparse
import random
from typing import Any

import aclnn_bindings
from aclnn_bindings.errors import ArgumentError
from aclnn_bindings.interface.signature import Kind
from aclnn_bindings.runtime.status import AclError

DTYPES = ["FLOAT", "FLOAT16", "INT64", "INT32", "BOOL", "UINT8", "DOUBLE", "BFLOAT16", "COMPLEX64"]
# Operators that wait for other processes or for time have nothing to compute here.
SKIPPED = ("aclnnSleep",)


class Fuzzer:
    """Random arguments that are plausible enough to pass phase 1 now and then."""

    def __init__(self, cann: Any, seed: int) -> None:
        self.cann, self.random = cann, random.Random(seed)
        self.shape: tuple[int, ...] = ()
        self.disagree = 0.0
        self.dtype = "FLOAT"

    def begin(self) -> None:
        """Choose what most tensors of one call agree on."""
        r = self.random
        self.shape = tuple(r.choice([0, 1, 2, 3, 4]) for _ in range(r.choice([0, 1, 2, 3, 4, 4])))
        self.dtype = r.choice(DTYPES[: r.choice([1, 2, len(DTYPES)])])
        self.disagree = r.choice([0.0, 0.1, 0.4])

    def tensor(self) -> Any:
        r = self.random
        shape = self.shape
        if r.random() < self.disagree:
            shape = tuple(r.choice([0, 1, 2, 3]) for _ in range(r.choice([0, 1, 2, 3, 4])))
        dtype = self.dtype if r.random() > self.disagree / 2 else r.choice(DTYPES)
        made = self.cann.empty(shape, dtype)
        if made.spec.nbytes:
            fill = r.choice([0, 1]) if dtype in ("BOOL", "INT64", "INT32") else r.choice([0, 0x3C])
            made.buffer.write(bytes([fill]) * made.spec.nbytes)
        return made

    def value(self, param: Any) -> Any:
        r, kind = self.random, param.kind
        if r.random() < self.disagree / 4 and kind in (Kind.TENSOR, Kind.SCALAR, Kind.INT_ARRAY):
            return None
        if kind is Kind.TENSOR:
            return self.tensor()
        if kind is Kind.TENSOR_LIST:
            return tuple(self.tensor() for _ in range(r.choice([0, 1, 2, 3])))
        if kind is Kind.SCALAR:
            return r.choice([0, 1, -1, 2, 0.5, -2.0, True, float("nan"), float("inf")])
        if kind is Kind.SCALAR_LIST:
            return tuple(r.choice([0.0, 1.0, 2.0]) for _ in range(r.choice([0, 1, 2, 3])))
        if kind is Kind.INT_ARRAY:
            return tuple(r.choice([-1, 0, 1, 2, 3]) for _ in range(r.choice([0, 1, 2, 2, 4])))
        if kind is Kind.BOOL_ARRAY:
            return tuple(r.random() < 0.7 for _ in range(r.choice([0, 1, 2, 3])))
        if kind is Kind.FLOAT_ARRAY:
            return (1.0, 2.0)
        if kind is Kind.BOOL:
            return r.random() < 0.5
        if kind in (Kind.FLOAT, Kind.DOUBLE):
            return r.choice([0.0, 1e-5, 0.5, 1.0, -1.0, float("nan")])
        if kind is Kind.STRING:
            return r.choice(["none", "tanh", "BNSD", "BSH", "half", ""])
        if kind is Kind.ENUM:
            return r.choice([0, 1, 3, 9, 12, 27])
        unsigned = kind.name.startswith(("UINT", "SIZE"))
        return r.choice([0, 1, 2, 3] if unsigned else [-1, 0, 1, 2, 3])


def main() -> None:
    """Fuzz every operator that the install exports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--first", default="", help="names before it are left out")
    parser.add_argument("--only", default="", help="the one operator to call")
    parser.add_argument("--home", default=None, help="an install; the bundled simulator without")
    asked = parser.parse_args()
    seed, rounds = asked.seed, asked.rounds
    cann = aclnn_bindings.open(asked.home, simulator=not asked.home)
    fuzzer = Fuzzer(cann, seed)
    passed = refused = 0
    for name in sorted(cann.declarations.ops):
        if name < asked.first or name in SKIPPED or asked.only not in ("", name):
            continue
        if not cann.has_op(name):
            continue
        print(name, flush=True)
        fuzzer.random.seed(f"{seed} {name}")  # what one operator is given depends on no other
        op = cann.op(name)
        for _ in range(rounds):
            fuzzer.begin()
            try:
                op(*[fuzzer.value(p) for p in op.params])
                cann.runtime.current_stream().synchronize()
                passed += 1
            except (AclError, ArgumentError):
                refused += 1
    print(f"done: {passed} ran, {refused} were refused")


if __name__ == "__main__":
    main()
