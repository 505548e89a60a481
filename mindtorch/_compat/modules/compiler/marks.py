"""Owns what programs say of their tensors' sizes (torch._dynamo.mark_dynamic), and its refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from mindtorch._tensor.subclass import OURS
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.aten import TracedInt, traced_int
from mindtorch.fx.call_sites import user_stack
from mindtorch.fx.node import Node
from mindtorch.library.symbols import ConstraintViolationError

from . import graph_breaks


def may_change(tensor: Tensor, dim: int, known: bool) -> bool:
    """Whether a size is no part of what a graph is for; `known`: what is so without marks."""
    if dim in getattr(tensor, "_dynamo_dynamic_indices", ()):
        return True
    if dim in getattr(tensor, "_dynamo_static_indices", ()):
        return False
    weak = ("_dynamo_weak_dynamic_indices", "_dynamo_unbacked_indices")
    return known or any(dim in getattr(tensor, name, ()) for name in weak)


class ChangingSize(TracedInt):
    """A size that may change: where the program sees that it is a number, it may not."""

    marks: SizeMarks

    def __eq__(self, other: object) -> bool:
        equal = int.__eq__(self, other) is True
        ours = sys._getframe(1).f_code.co_filename.startswith(OURS)
        if equal and type(other) is int and not ours:
            self.marks.fix(self.values)
        return equal

    def __ne__(self, other: object) -> bool:
        equal = int.__eq__(self, other) is True
        ours = sys._getframe(1).f_code.co_filename.startswith(OURS)
        if equal and type(other) is int and not ours:
            self.marks.fix(self.values)
        return not equal

    __hash__ = int.__hash__


class SizeMarks:
    """The changing sizes of one call by their two values, and those that the program fixed.

    A size is that of an input, by where that is from, and a dim.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[int, ...], tuple[str, int]] = {}
        self.strict = set[tuple[str, int]]()
        self.fixed: dict[tuple[str, int], tuple[int, str]] = {}

    def add(self, tensor: Any, source: str, dim: int, values: tuple[int, int]) -> None:
        """Note a size; ConstraintViolationError where it is outside of its bounds."""
        self.places.setdefault(values, (source, dim))
        if dim in getattr(tensor, "_dynamo_dynamic_indices", ()):
            self.strict.add((source, dim))
        for at, least, most in getattr(tensor, "_dynamo_dynamic_range", ()):
            below = least is not None and values[0] < least
            if at == dim and (below or (most is not None and values[0] > most)):
                top = "int_oo" if most is None else most
                raise ConstraintViolationError(
                    f"{values[0]} not in range [{least or 0}, {top}]\n\nfrom user code:\n"
                    f" {user_stack()}\n{graph_breaks.VERBOSE}"
                )

    def size(self, values: tuple[int, int], make: Callable[[], Node]) -> int:
        """A size with its node."""
        if values not in self.places:
            return traced_int(values, make)
        size = ChangingSize(values[0])
        size.values, size.make, size.marks = values, make, self
        return size

    def fix(self, values: tuple[int, ...]) -> None:
        """The program works for one of a size's values alone."""
        if (place := self.places.get(values)) is not None:
            self.fixed.setdefault(place, (values[0], user_stack()))

    def fix_all(self, metas: Sequence[tuple[Tensor, ...]]) -> None:
        """The same of the sizes of a call's operands, which are by version."""
        for meta in metas:
            for values in zip(*(m.shape for m in meta), strict=True):
                self.fix(values)

    def refuse(self) -> None:
        """ConstraintViolationError where the program said that what it fixed may change."""
        lines, names = list[str](), list[str]()
        for (source, dim), (size, stack) in self.fixed.items():
            if (source, dim) in self.strict:
                names.append(f"{source}.size()[{dim}]")
                lines.append(
                    f"  - You marked {names[-1]} as dynamic but your code specialized it to be a"
                    f" constant ({size}). If you're using mark_dynamic, either remove it or use"
                    " maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either"
                    f" Dim.STATIC or Dim.AUTO.\n\nUser stack:\n{stack}\n"
                )
        if names:
            raise ConstraintViolationError(
                f"Constraints violated ({', '.join(names)})! For more information, run with"
                ' TORCH_LOGS="+dynamic".\n' + "\n".join(lines)
            )
