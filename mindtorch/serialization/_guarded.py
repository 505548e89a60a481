"""Owns the unpickler of files that nobody trusts: what a pickle may call, write into and hash.

Python's own calls whatever lies on its stack, sets items of it, and hashes tuples without a limit:
one that holds itself twice, sixty times over, never ends, and one a million deep ends the process.
"""

from __future__ import annotations

import pickle
import reprlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from ._pickles import Unpickler

_DEEPEST = 500  # tuples inside tuples
_LARGEST = 1 << 22  # tuples that a hash of one would visit


class _ShortRepr(reprlib.Repr):
    """Values in errors: a line of them, and of what files make only the class."""

    def repr_instance(self, value: Any, level: int) -> str:
        return f"<{type(value).__name__}>"


represent = _ShortRepr().repr


def _integers(values: Any) -> bool:
    return values.__class__ in (tuple, list) and all(v.__class__ is int for v in values)


def _pairs(values: Any) -> bool:
    if values.__class__ is dict:
        return True
    return values.__class__ is list and all(v.__class__ in (tuple, list) for v in values)


# What these are called with, if with anything: they would read any number of a tensor's elements.
_TAKES: dict[Any, Callable[[Any], bool]] = {
    set: lambda v: v.__class__ in (list, tuple),
    OrderedDict: _pairs,
    Counter: lambda v: v.__class__ in (dict, list),
    Size: _integers,
    complex: lambda v: v.__class__ in (int, float, str),
    Tensor: lambda v: False,
}


class Guarded(Unpickler):
    """Calls what the file names alone, writes into what the file makes, and hashes in short."""

    dispatch = dict(Unpickler.dispatch)

    def __init__(self, file: BinaryIO, **options: Any):
        super().__init__(file, **options)
        self._named: dict[int, Any] = {}
        self._nested: dict[int, tuple[int, int]] = {}  # of tuples in tuples: depth, tuples inside

    def named(self, module: str, name: str) -> Any:
        """What the file means by a name; subclasses say so, or refuse."""
        raise NotImplementedError

    def find_class(self, module: str, name: str) -> Any:
        value = self.named(module, name)
        self._named[id(value)] = value
        return value

    def _callable(self, function: Any, args: Any, options: Any = None) -> Any:
        if id(function) not in self._named or args.__class__ is not tuple:
            raise RuntimeError(f"load: data.pkl calls {represent(function)}, which it may not name")
        takes = _TAKES.get(function)
        if takes and (options or not all(takes(a) for a in args)):
            raise RuntimeError(f"load: data.pkl calls {represent(function)} with {represent(args)}")
        if function is Tensor:
            raise RuntimeError("load: data.pkl makes a tensor of nothing")
        return function

    def load_reduce(self) -> None:
        self._callable(self.stack[-2], self.stack[-1])
        super().load_reduce()

    def load_newobj(self) -> None:
        self._callable(self.stack[-2], self.stack[-1])
        super().load_newobj()

    def load_newobj_ex(self) -> None:
        self._callable(self.stack[-3], self.stack[-2], self.stack[-1])
        super().load_newobj_ex()

    def _instantiate(self, function: Any, args: list[Any]) -> None:
        super()._instantiate(self._callable(function, tuple(args)), args)

    def writable(self, target: Any, kinds: tuple[type, ...]) -> bool:
        """Whether the file may add to an object: it made it, and adding runs nothing else."""
        return isinstance(target, kinds)

    def _check_writable(self, target: Any, kinds: tuple[type, ...]) -> None:
        if not self.writable(target, kinds):
            raise RuntimeError(f"load: data.pkl writes into {represent(target)}")

    def load_append(self) -> None:
        self._check_writable(self.stack[-2], (list,))
        super().load_append()

    def load_appends(self) -> None:
        self._check_writable(self.metastack[-1][-1], (list,))
        super().load_appends()

    def load_setitem(self) -> None:
        self._check_writable(self.stack[-3], (dict,))
        super().load_setitem()

    def load_setitems(self) -> None:
        self._check_writable(self.metastack[-1][-1], (dict,))
        super().load_setitems()

    def load_additems(self) -> None:
        self._check_writable(self.metastack[-1][-1], (set,))
        super().load_additems()

    def _weigh(self) -> None:
        """Note how deep the tuple on top is, and how many it holds."""
        value, nested = self.stack[-1], self._nested
        depth, count = 0, 1
        for item in value:
            if item.__class__ is tuple:
                below, inside = nested.get(id(item), (1, 1))
                depth, count = max(depth, below), count + inside
        if depth >= _DEEPEST or count > _LARGEST:
            raise RuntimeError(
                f"load: data.pkl nests tuples {depth + 1} deep, {count} of them; at most"
                f" {_DEEPEST} and {_LARGEST} are read"
            )
        if depth:
            nested[id(value)] = depth + 1, count
        else:
            nested.pop(id(value), None)

    def load_tuple(self) -> None:
        super().load_tuple()
        self._weigh()

    def load_tuple1(self) -> None:
        super().load_tuple1()
        self._weigh()

    def load_tuple2(self) -> None:
        super().load_tuple2()
        self._weigh()

    def load_tuple3(self) -> None:
        super().load_tuple3()
        self._weigh()

    def refused(self) -> None:
        """For opcodes that nothing which is saved needs: memory of a size alone, other names."""
        raise RuntimeError(
            "load: data.pkl holds a bytearray or a name by number, which nothing that is saved"
            " needs"
        )

    dispatch.update({
        pickle.REDUCE[0]: load_reduce, pickle.NEWOBJ[0]: load_newobj,
        pickle.NEWOBJ_EX[0]: load_newobj_ex, pickle.APPEND[0]: load_append,
        pickle.APPENDS[0]: load_appends, pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems, pickle.ADDITEMS[0]: load_additems,
        pickle.TUPLE[0]: load_tuple, pickle.TUPLE1[0]: load_tuple1,
        pickle.TUPLE2[0]: load_tuple2, pickle.TUPLE3[0]: load_tuple3,
        pickle.BYTEARRAY8[0]: refused, pickle.EXT1[0]: refused, pickle.EXT2[0]: refused,
        pickle.EXT4[0]: refused,
    })  # fmt: skip
