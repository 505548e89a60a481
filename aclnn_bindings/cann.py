"""Owns one opened install: its declarations, runtime, operators and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .call.arrays import DeviceTensor, empty, from_host
from .call.cache import PlanCache
from .call.choice import Signatures
from .call.function import BoundFunction
from .call.namespace import Functions, Operators
from .call.operator import BoundOp
from .errors import BindingError, MissingSymbolError, RuntimeStateError
from .install.describe import Install
from .install.library import declarations, find_install
from .interface.signature import Declarations
from .runtime.locks import Lock
from .runtime.runtime import Runtime
from .runtime.symbols import SymbolLookup

if TYPE_CHECKING:
    from .runtime.stream import Stream


class Cann:
    """An install that can be called. Opening it loads and initialises nothing yet."""

    functions: Functions

    def __init__(self, install: Install, declared: Declarations | None = None) -> None:
        self.install = install
        if declared is not None:
            self.declarations = declared
        self.symbols: SymbolLookup = SymbolLookup(install)
        self.signatures: Signatures = Signatures(install, self.symbols, lambda: self.declarations)
        self.plans: PlanCache = PlanCache()
        self.runtime: Runtime = Runtime(self.symbols, lambda: self.declarations)
        self.runtime.on_close(self.plans.clear)
        self._ops: dict[str, BoundOp] = {}
        self._near: dict[str, list[str]] = {}
        self.ops: Operators = Operators(lambda: self.declarations.ops, self.op, install.root)
        self.functions = Functions(lambda: self.declarations.functions, self.function, install.root)

    @cached_property
    def declarations(self) -> Declarations:
        """What the install's headers, or the catalog of its version, declare."""
        return declarations(self.install)

    def __repr__(self) -> str:
        return f"Cann({self.install.kind} {self.install.version or '?'} at {self.install.root})"

    def op(self, name: str) -> BoundOp:
        """The operator `name`, such as aclnnAdd; MissingSymbolError if it is not declared or not
        exported, UnsupportedSignatureError if it cannot be called, UntrustedSignatureError if its
        declaration need not be its library's."""
        bound = self._ops.get(name)
        if bound is None:
            ops = self.declarations.ops
            if name not in ops:
                raise self._undeclared(name, "operator", list(ops))
            bound = BoundOp(self.signatures.op(ops[name]), self.runtime, self.symbols, self.plans)
            self._ops[name] = bound
        return bound

    def has_op(self, name: str) -> bool:
        """Whether `op` would give it: declared and exported, both phases by the same library."""
        if name not in self.declarations.ops:
            return False  # `op` would look for names that are near
        try:
            self.op(name)
        except BindingError:
            return False
        return True

    def soc_name(self) -> str:
        """The machine's SoC name, such as Ascend910B3; RuntimeStateError where ACL gives NULL."""
        name = self.function("aclrtGetSocName")()
        if not name:
            raise RuntimeStateError(
                "aclrtGetSocName: it returned NULL: no driver or device answers; see "
                "`mindtorch-npu probe`"
            )
        return str(name)

    def function(self, name: str) -> BoundFunction:
        """The function `name`, such as aclrtGetSocName; errors as for `op`."""
        functions = self.declarations.functions
        if name not in functions:
            raise self._undeclared(name, "function", list(functions))
        return BoundFunction(self.signatures.function(functions[name]), self.runtime, self.symbols)

    def _undeclared(self, name: str, what: str, names: Sequence[str]) -> MissingSymbolError:
        near = self._near.get(name)
        if near is None:
            key, spelt = name.lower().replace("_", ""), {n.lower(): n for n in names}
            if what == "operator" and not key.startswith("acl"):
                key = f"aclnn{key}"  # `add` is aclnnAdd
            near = self._near[name] = [spelt[n] for n in get_close_matches(key, spelt, 3)]
        return MissingSymbolError(
            f"{name}: no {what} of that name is declared by {self.install.root}"
            + (f"; near: {', '.join(near)}" if near else "")
        )

    def tensor(self, array: Any, stream: Stream | None = None) -> DeviceTensor:
        """A copy of a numpy array, or of what numpy makes one of, on the current device."""
        return from_host(self.runtime, array, stream)

    def empty(
        self, shape: int | Sequence[int], dtype: Any = "FLOAT", stream: Stream | None = None
    ) -> DeviceTensor:
        """A tensor with unspecified contents on the current device, of a dtype that is given by
        ACL's name, by numpy's, or as a numpy dtype."""
        return empty(self.runtime, shape, dtype, stream)

    def go_through(self, places: Mapping[Path, Path]) -> None:
        """Call through the files that stand before the install's libraries ({}: call these
        directly again). Operators and plans are bound anew; those that somebody kept still call
        what they did."""
        self.symbols.go_through(places)
        self.runtime.bind_again()
        self._ops.clear()
        self.plans.clear()

    def close(self) -> None:
        """Stop the runtime if it was started; the object can be used again, which restarts it."""
        self.runtime.close()

    def __enter__(self) -> Cann:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_opened: Final[dict[Path, Cann]] = {}
_lock: Final = Lock()


def open_install(home: str | Path | None = None, simulator: bool = False) -> Cann:
    """The install that `find_install` chooses; the same object each time for one root."""
    install = find_install(home, simulator=simulator)
    with _lock:
        if install.root not in _opened:
            _opened[install.root] = Cann(install)
        return _opened[install.root]
