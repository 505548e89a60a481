"""Owns what every ACLNN function promises in phase 1, checked from its header alone.

Null where a tensor is required answers 161001; a dtype nobody claims and rank 9 answer 161002;
success sets workspace size and executor; nothing leaks (two-phase interface document, CANN 9.1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final
from weakref import WeakKeyDictionary

from aclnn_bindings import (
    Kind,
    OpSignature,
    TensorSpec,
    address_of,
    ffi,
    product_of,
    support,
)
from aclnn_bindings.install.products import Support
from aclnn_bindings.runtime.words import call, decode

from ..record.result import Result
from .case import CONTRACTS, Case
from .guess import ATTEMPTS, Attempt, Filler, tensors

_UNSET: Final = 0xA5A5A5A5A5A5A5A5
_REPEATS: Final = 20
_RANK: Final = 9
_NULLABLE: Final = frozenset((
    Kind.TENSOR, Kind.TENSOR_LIST, Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY,
    Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY,
))  # fmt: skip
_STRANGE: Final = ("COMPLEX128", "UINT64", "COMPLEX64", "DOUBLE", "BOOL", "UINT16")


# The first attempt that succeeds, by install and function: every case of one starts from it.
_GOOD: Final[WeakKeyDictionary[Any, dict[str, tuple[Attempt | None, int]]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Answer:
    """What phase 1 answered: its code, the workspace size, whether an executor was set."""

    code: int
    workspace: int
    executor: int


def cases_of(signature: OpSignature) -> Iterator[Case]:
    """The contract's cases of one function."""
    for form in CONTRACTS:
        if form == "contract-null":
            for param in signature.params:
                if param.kind in _NULLABLE and _required(signature.name, param.name):
                    yield Case(signature.name, form, detail=param.name)
        elif form in ("contract-dtype", "contract-rank"):
            if any(True for _ in tensors(signature)):
                yield Case(signature.name, form)
        else:
            yield Case(signature.name, form)


@cache
def _documents() -> Any:
    import aclnn_bindings

    path = files(aclnn_bindings) / "catalogs" / "op_specs.json"
    return json.loads(path.read_text("utf-8"))["ops"]


def _required(op: str, param: str) -> bool:
    """Whether documents say that a null there answers 161001."""
    return param in _documents().get(op, {}).get("nulls", ())


class PhaseOne:
    """Phase 1 of one function of an opened install."""

    def __init__(self, cann: Any, name: str) -> None:
        self.cann, self.name = cann, name
        self.signature: OpSignature = cann.declarations.ops[name]
        cann.runtime.start()
        cann.runtime.current_stream()
        self.phase1 = cann.symbols.require(self.signature.workspace.name)
        self.keeps_executor = ""
        self.filler = Filler(cann, self.signature, cann.soc_name())
        # Functions of acldvppop have codes of their own (acldvpp_base.h).
        family, codes = ("ACLNN", (161001, 161002))
        if name.startswith("acldvpp"):
            family, codes = ("ACLDVPP", (106001, 106002))
        self.null, self.invalid = (
            cann.runtime.constant(f"{family}_ERR_PARAM_{word}", code)
            for word, code in zip(("NULLPTR", "INVALID"), codes, strict=True)
        )

    def ask(self, attempt: Attempt) -> Answer:
        """Call phase 1; an executor that it makes is destroyed."""
        size, executor = ffi.new("uint64_t *", _UNSET), ffi.new("uint64_t *", _UNSET)
        with ExitStack() as stack:
            words = self.filler.words(attempt, stack)
            words += [(False, address_of(size)), (False, address_of(executor))]
            code = decode("int", call(self.phase1, words), {})
            answer = Answer(code, int(size[0]), int(executor[0]))
            if code == 0 and answer.executor not in (0, _UNSET):
                self._destroy(answer.executor)
            elif code:
                self._forget()
        return answer

    def _forget(self) -> None:
        """Take the message of a refusal that was meant: the next error's is to tell its own."""
        if recent := self.cann.symbols.address("aclGetRecentErrMsg"):
            call(recent, [])

    def _destroy(self, executor: int) -> None:
        symbols = self.cann.symbols
        keep = symbols.address("aclSetAclOpExecutorRepeatable")
        destroy = symbols.address("aclDestroyAclOpExecutor")
        self.keeps_executor = "its executor can only be released by running it"
        if keep and destroy:
            code = decode("int", call(keep, [(False, executor)]), {})
            self.keeps_executor += f": aclSetAclOpExecutorRepeatable answered {code}"
            if code == 0:
                self.keeps_executor = ""
                call(destroy, [(False, executor)])

    def good(self) -> tuple[Attempt | None, int]:
        """The first attempt that succeeds, or None and the last code; asked once per install."""
        known = _GOOD.setdefault(self.cann, {})
        if self.name not in known:
            known[self.name] = self._good()
        return known[self.name]

    def _good(self) -> tuple[Attempt | None, int]:
        code = 0
        for attempt in ATTEMPTS:
            code = self.ask(attempt).code
            if code == 0:
                return attempt, 0
        return None, code


def run(case: Case, cann: Any) -> Result:
    """Run one contract case."""
    function = PhaseOne(cann, case.op)
    try:
        if _elsewhere(function):
            return _result(case, "SKIP", "documents do not list this product for the operator")
        if _irregular(function.signature):
            return _result(case, "SKIP", "phase 1 takes values that no header explains")
        return _LAWS[case.form](function, case)
    finally:
        function.filler.close()


def _elsewhere(function: PhaseOne) -> bool:
    """Whether documents name the operator's products, and this one is not among them."""
    documented = _documents_of(function)
    product = product_of(function.cann.soc_name())
    return documented is not None and documented.on(product) is False


def _documents_of(function: PhaseOne) -> Support | None:
    return support(function.name, product_of(function.cann.soc_name()))


def _irregular(signature: OpSignature) -> bool:
    kinds = {p.kind for p in signature.params}
    return bool(kinds & {Kind.STRUCT, Kind.VARARGS, Kind.FUNCTION, Kind.STRING})


def _result(case: Case, verdict: str, reason: str = "") -> Result:
    tier = "T0" if verdict == "PASS" else ""
    return Result(case.id, case.op, case.form, verdict, tier=tier, required="T0", reason=reason,
                  aclnn=case.op)  # fmt: skip


def _expect(case: Case, answer: Answer, code: int, what: str) -> Result:
    if answer.code == code:
        return _result(case, "PASS")
    return _result(case, "FAIL", f"{what} answered {answer.code}, expected {code}")


def _call(function: PhaseOne, case: Case) -> Result:
    attempt, code = function.good()
    if attempt is None:
        return _result(case, "SKIP", f"no arguments made from the header succeed (last: {code})")
    answer = function.ask(attempt)
    unset = [n for n, v in (("workspaceSize", answer.workspace), ("executor", answer.executor))
             if v == _UNSET]  # fmt: skip
    if unset or not answer.executor:
        names = " and ".join(unset or ["executor"])
        return _result(case, "FAIL", f"success, and {names} was not set")
    return _result(case, "PASS")


def _null(function: PhaseOne, case: Case) -> Result:
    position = next(i for i, p in enumerate(function.signature.params) if p.name == case.detail)
    attempt, _ = function.good()
    base = attempt or ATTEMPTS[0]
    answer = function.ask(replace(base, null=position))
    if attempt is None and answer.code == function.invalid:
        return _result(case, "SKIP", "no arguments made from the header succeed to begin with")
    return _expect(case, answer, function.null, f"null {case.detail}")


def _dtype(function: PhaseOne, case: Case) -> Result:
    attempt, _ = function.good()
    if attempt is None:
        return _result(case, "SKIP", "no arguments made from the header succeed to begin with")
    for position in tensors(function.signature):
        param = function.signature.params[position]
        known = function.filler.dtypes(param)
        strange = next((d for d in _STRANGE if d not in known), None)
        if not known or strange is None:
            continue
        spec = TensorSpec.of(function.filler.spec(position, attempt).shape, strange)
        answer = function.ask(replace(attempt, specs={position: spec}))
        return _expect(case, answer, function.invalid, f"{param.name} of {strange}")
    return _result(case, "SKIP", "no header and no document lists dtypes")


def _rank(function: PhaseOne, case: Case) -> Result:
    attempt, _ = function.good()
    if attempt is None:
        return _result(case, "SKIP", "no arguments made from the header succeed to begin with")
    specs = {
        i: TensorSpec.of((1,) * _RANK, function.filler.spec(i, attempt).dtype)
        for i in tensors(function.signature)
    }
    answer = function.ask(replace(attempt, specs=specs))
    if answer.code == 0 and _documents_of(function) is None:
        return _result(case, "SKIP", f"no document limits the rank, and it takes rank {_RANK}")
    return _expect(case, answer, function.invalid, f"rank {_RANK}")


def _leak(function: PhaseOne, case: Case) -> Result:
    count = function.cann.symbols.address("aclsimLiveHandles")
    if not count:
        return _result(case, "SKIP", "only the simulator counts its handles")
    attempt, _ = function.good()
    base = attempt or ATTEMPTS[0]
    function.ask(base)
    if function.keeps_executor:
        return _result(case, "SKIP", function.keeps_executor)
    before = call(count, [(False, 0)])
    for _ in range(_REPEATS):
        function.ask(base)
        function.ask(replace(base, null=0))
    after = call(count, [(False, 0)])
    if after <= before:
        return _result(case, "PASS")
    kind = "call" if attempt else "refused call"
    return _result(case, "FAIL", f"{after - before} handles more after {2 * _REPEATS} {kind}s")


_LAWS: Final = {
    "contract-call": _call,
    "contract-null": _null,
    "contract-dtype": _dtype,
    "contract-rank": _rank,
    "contract-leak": _leak,
}
