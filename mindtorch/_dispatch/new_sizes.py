"""Owns sizes that fakes of operators ask for: nobody knows them before an operator runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from .._tensor.tensor import Tensor
from ..utils._pytree import tree_leaves

_GIVER: ContextVar[Callable[[int, int | None], int] | None] = ContextVar("_GIVER", default=None)
_FIRST = 1009  # a size that no test has


class SizeOfValues(RuntimeError):
    """A fake asked for a size where nobody gives one."""


SizeOfValues.__name__ = SizeOfValues.__qualname__ = "RuntimeError"  # to programs


class NewSize(NamedTuple):
    """A size that a fake asked for: its bounds, its value in a run, and which sizes of the results
    it is, as result and dim."""

    least: int
    most: int | None
    value: int
    places: list[tuple[int, int]]


class FakeImplCtx:
    """What `torch.library.get_ctx()` gives a fake function."""

    def __init__(self, name: str, function: Callable[..., Any] | None):
        self._name, self._code = name, getattr(function, "__code__", None)

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that the data says; RuntimeError for tensors on meta, which have none."""
        if (give := _GIVER.get()) is not None:
            return give(min, max)
        code = self._code
        place = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
        raise SizeOfValues(
            f"{self._name} ({place}): You're trying to run this operator with meta"
            " Tensors (as opposed to FakeTensors), but this operator may return an output Tensor"
            " with data-dependent shape. Meta Tensors don't support operators with outputs that"
            " have data-dependent shapes but FakeTensors do. If your operator does not return an"
            " output with data-dependent shape, make sure the FakeTensor and/or meta kernel does"
            " not call torch.library.get_ctx(). Otherwise, please use FakeTensors."
        )

    new_unbacked_symint = new_dynamic_size


@contextmanager
def _giving(give: Callable[[int, int | None], int]) -> Iterator[None]:
    token = _GIVER.set(give)
    try:
        yield
    finally:
        _GIVER.reset(token)


def with_sizes(run: Callable[[], Any], values: Iterable[int]) -> Any:
    """What a fake gives where its new sizes are these, in order."""
    rest = iter(values)
    with _giving(lambda least, most: next(rest)):
        return run()


def new_sizes(run: Callable[[], Any], real: object) -> list[NewSize]:
    """The sizes that a fake asks for in `run()`, where the operator itself gave `real`."""
    bounds = list[tuple[int, int | None]]()

    def give(least: int, most: int | None) -> int:
        bounds.append((least, most))
        return _FIRST + len(bounds)

    with _giving(give):
        fakes = tree_leaves(run())
    sizes, reals = list[NewSize](), tree_leaves(real)
    for at, (least, most) in enumerate(bounds, 1):
        places = [
            (leaf, dim) for leaf, fake in enumerate(fakes) if isinstance(fake, Tensor)
            for dim, size in enumerate(fake.shape) if size == _FIRST + at
        ]  # fmt: skip
        values = [reals[leaf].shape[dim] for leaf, dim in places]
        sizes.append(NewSize(least, most, values[0] if values else least, places))
    return sizes
