"""Owns the inner loops of npu plans: one closure maker per pattern of addresses, compiled once.

A run is: steps, the C plan (by the values of numbers, where there are any), one C call that
allocates the results and launches, and the tensors over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from aclnn_bindings import launch, launch_into, launch_many

from ..._tensor.geometry import Geometry
from ..._tensor.slots import fresh
from ...ops.source import compiled
from . import runtime

_LIMIT = 256  # plans kept per geometry for numbers that change
_MOST = 32  # operands and results of the launches that take no list
_makers: dict[str, Any] = {}


class Plans:
    """C plans of one geometry by the numbers they were made with, a bounded number of them."""

    __slots__ = ("_make", "by_key")

    def __init__(self, make: Callable[..., Any]):
        self._make = make
        self.by_key: dict[Any, Any] = {}

    def add(self, key: Any, args: Sequence[Any]) -> Any:
        """Make the plan for these arguments and keep it."""
        plan = self._make(args)
        if len(self.by_key) >= _LIMIT:
            self.by_key.clear()
        self.by_key[key] = plan
        return plan


def number_key(values: Sequence[str]) -> str:
    """Source of the key of numbers: 0.0 and -0.0 are equal and need plans of their own."""
    keys = [f"({v} or repr({v}))" for v in values]
    return keys[0] if len(keys) == 1 else f"({', '.join(keys)},)"


@cache
def making(
    addresses: tuple[tuple[str, int], ...], count: int, numbers: tuple[int, ...],
    stepped: tuple[int, ...], results: int, into: bool,
) -> Callable[..., Any]:  # fmt: skip
    """The maker of one pattern: whose memory is passed, of how many arguments which are numbers,
    which have steps, how many results there are, and whether they go to given tensors."""
    return maker(source_of(addresses, count, numbers, stepped, results, into))


def source_of(
    addresses: Sequence[tuple[str, int]], count: int, numbers: Sequence[int],
    stepped: Sequence[int], results: int, into: bool,
) -> str:  # fmt: skip
    """The maker's source text for one pattern."""
    params = ", ".join([*(["dests"] if into else []), *(f"a{i}" for i in range(count))])
    lines = [f"a{i} = steps[{i}](a{i})" for i in stepped]
    body = "".join(f"    {line}\n" for line in _lookup(count, numbers) + lines)
    body += _launch([_memory(kind, i) for kind, i in addresses], results)
    inner = body.replace("\n", "\n    ").rstrip(" ")
    consts = [f"    geom{k}, nbytes{k} = geoms[{k}], nbytes[{k}]\n" for k in range(results)]
    return (
        f"def make(plans, plan, steps, index, geoms, nbytes, session):\n{''.join(consts)}"
        "    by_key = plans.by_key if plans is not None else None\n"
        f"    def run({params}):\n    {inner}    return run\n"
    )


def _lookup(count: int, numbers: Sequence[int]) -> list[str]:
    if not numbers:
        return []
    everything = "".join(f"a{i}, " for i in range(count))
    return [
        f"key = {number_key([f'a{i}' for i in numbers])}",
        "plan = by_key.get(key)",
        f"if plan is None: plan = plans.add(key, ({everything}))",
    ]


def _memory(kind: str, i: int) -> str:
    """Source of an operand's Block; of a list's Blocks."""
    if kind == "d":
        return f"dests[{i}]._storage.memory"
    if kind == "l":
        return f"*[None if t is None else t._storage.memory for t in a{i}]"
    return f"a{i}._storage.memory"


def _launch(memory: Sequence[str], results: int) -> str:
    """Source of the C call and of what it returns; Blocks go to C as they are."""
    stream = "shared[index] or here(index)"
    failed = "        failed(plan, index)\n"
    tail = "".join(f", {block}" for block in memory)
    many = any(block.startswith("*") for block in memory) or len(memory) + results > _MOST
    if not many and results == 0:
        return f"    if not launch_into(plan.address, {stream}{tail}):\n{failed}"
    if not many and results == 1:
        call = f"launch(plan.address, {stream}, nbytes0, session{tail})"
        return f"    o0 = {call}\n    if o0 is None:\n{failed}" + _results(["o0"])
    call = f"launch_many(plan.address, {stream}, nbytes, session{tail})"
    text = f"    blocks = {call}\n    if blocks is None:\n{failed}"
    return text + _results([f"blocks[{k}]" for k in range(results)])


def _results(blocks: Sequence[str]) -> str:
    """Source of the tensors over these Blocks."""
    if not blocks:
        return ""
    tensors = [f"fresh(geom{k}, {block})" for k, block in enumerate(blocks)]
    return f"    return {tensors[0] if len(tensors) == 1 else '(' + ', '.join(tensors) + ')'}\n"


def failed(plan: Any, index: int) -> None:
    """Raise what a launch failed with. A plan that another thread's restart of the runtime left
    behind is forgotten, so that the next call makes its own."""
    if not plan.valid:
        runtime.forget()
    plan.throw(runtime.current_stream(index))


def maker(source: str) -> Callable[..., Any]:
    """The function `make` of a source text, compiled once."""
    build = _makers.get(source)
    if build is None:
        scope: dict[str, Any] = {
            "fresh": fresh,
            "shared": runtime.SHARED, "here": runtime.stream_address,
            "failed": failed, "launch": launch,
            "launch_into": launch_into, "launch_many": launch_many,
        }  # fmt: skip
        build = _makers[source] = compiled(source, f"npu runner {len(_makers)}", scope)
    return build


def sizes(geoms: Sequence[Geometry]) -> tuple[int, ...]:
    """Bytes of each result's storage."""
    return tuple(g.extent * g.dtype.itemsize for g in geoms)
