"""Owns how function modes see attributes and small methods of tensors: `x.shape`, `len(x)`.

These are read without a look at modes. While one is on, the code of their functions is another,
which asks it: the objects stay the same, and without a mode nothing is looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock
from types import CodeType, FunctionType
from typing import Any

from .._tensor.subclass import OURS
from .._tensor.tensor import Tensor
from .builtins import function_of

Ask = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
# Methods by which Python's own functions look at a tensor.
_SPECIAL = frozenset(("__bool__", "__contains__", "__float__", "__format__", "__int__",
                      "__invert__", "__len__", "__repr__", "__reversed__"))  # fmt: skip
# Their calls change the tensor's class, which no class is asked for.
_UNASKED = frozenset(("as_subclass",))


def _asking(self: Any, *args: Any, _ask: Any, **kwargs: Any) -> Any:
    return _ask(self, args, kwargs)


class AttributeWatch:
    """Counts the modes that are on, and exchanges code for the first and after the last."""

    def __init__(self, ask: Ask, is_seen: Callable[[], bool]) -> None:
        self._ask, self._is_seen = ask, is_seen
        self._lock, self._modes = Lock(), 0
        self._codes: dict[FunctionType, tuple[CodeType, dict[str, Any] | None]] = {}

    def enter(self) -> None:
        """A mode is on."""
        with self._lock:
            self._modes += 1
            if self._modes == 1:
                for name, member in list(vars(Tensor).items()):
                    if name in _SPECIAL or not (name[0] == "_" or name in _UNASKED):
                        self._exchange(name, member)

    def leave(self) -> None:
        """A mode is off again."""
        with self._lock:
            self._modes = max(self._modes - 1, 0)  # an interrupt may have ended `enter` early
            if not self._modes:
                for function, (code, defaults) in self._codes.items():
                    function.__code__ = code
                    function.__kwdefaults__ = defaults
                self._codes.clear()

    def _exchange(self, name: str, member: Any) -> None:
        is_property = isinstance(member, property)
        function = member.fget if is_property else function_of(member)
        if not isinstance(function, FunctionType):
            return
        code, defaults = function.__code__, function.__kwdefaults__
        asks = code.co_filename.startswith("<") or "asks_modes" in function.__dict__
        if asks or function in self._codes:
            return  # entries of rows ask by themselves
        original = FunctionType(
            code, function.__globals__, code.co_name, function.__defaults__, function.__closure__
        )
        original.__kwdefaults__ = defaults
        called = member.__get__ if is_property else member

        def ask(self_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            caller = sys._getframe(2).f_code.co_filename
            if self._is_seen() and not caller.startswith(OURS):
                return self._ask(called, (self_, *args), kwargs)
            return original(self_, *args, **kwargs)

        self._codes[function] = code, defaults
        function.__kwdefaults__ = {"_ask": ask}
        function.__code__ = _asking.__code__.replace(co_freevars=code.co_freevars)
