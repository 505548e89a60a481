"""torch.export of plain modules: a graph of functions and modules, traced by torch.fx.

Torch's graphs are of ATen operators; these hold the calls as the module makes them. What they
compute is the same, and inputs are held to the shapes of the example, or to `dynamic_shapes`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mindtorch
from mindtorch._compat.refusals import refusals
from mindtorch.fx import Graph, GraphModule, symbolic_trace
from mindtorch.fx.proxy import TraceError
from mindtorch.nn import Module

_NAMES = (
    "AdditionalInputs", "Constraint", "CustomDecompTable", "ExportBackwardSignature",
    "ExportGraphSignature", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature",
    "ShapesCollection", "UnflattenedModule", "default_decompositions", "draft_export",
    "register_dataclass", "unflatten",
)  # fmt: skip
_WHY = "mindtorch exports graphs of functions and modules, not of ATen operators"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = ["Dim", "ExportedProgram", "dims", "export", "load", "save", *_NAMES]
__getattr__ = refusals("torch.export", _WHY, _NAMES)


class Dim:
    """A size that may change from call to call, between `min` and `max`."""

    AUTO: Dim
    DYNAMIC: Dim
    STATIC = None

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        self.__name__, self.min, self.max = name, min or 0, max

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min})"

    def allows(self, size: int) -> bool:
        """Whether a size lies within the bounds."""
        return self.min <= size and (self.max is None or size <= self.max)


Dim.AUTO, Dim.DYNAMIC = Dim("AUTO"), Dim("DYNAMIC")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dims of the same bounds (torch.export.dims)."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ExportedProgram:
    """A module's graph, its state and what its inputs look like."""

    def __init__(
        self, graph_module: GraphModule, state: Mapping[str, Any], shapes: Mapping[str, Any],
        example: tuple[tuple[Any, ...], dict[str, Any]],
    ):  # fmt: skip
        self.graph_module = graph_module
        self.state_dict = dict(state)
        self.range_constraints = shapes
        self.example_inputs = example

    @property
    def graph(self) -> Graph:
        """The calls, in their order."""
        return self.graph_module.graph

    def parameters(self) -> Any:
        """The module's parameters."""
        return self.graph_module.parameters()

    def named_parameters(self) -> Any:
        """The module's parameters by name."""
        return self.graph_module.named_parameters()

    def buffers(self) -> Any:
        """The module's buffers."""
        return self.graph_module.buffers()

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that computes what was exported, and refuses inputs of other shapes."""
        module = copy.deepcopy(self.graph_module)
        if check_guards:
            module.register_forward_pre_hook(_guard(self), with_kwargs=True)
        return module

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()`"
            " instead."
        )

    def __str__(self) -> str:
        return f"ExportedProgram:\n{self.graph_module.code}"


def _guard(program: ExportedProgram) -> Callable[..., None]:
    args, kwargs = program.example_inputs
    names = [str(n.target) for n in program.graph.nodes if n.op == "placeholder"]

    def check(module: Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        example = {**dict(zip(names, args, strict=False)), **kwargs}
        actual = {**dict(zip(names, given, strict=False)), **named}
        for name, tensor in actual.items():
            expected = example.get(name)
            if isinstance(tensor, mindtorch.Tensor) and isinstance(expected, mindtorch.Tensor):
                _hold(name, tensor, expected, program.range_constraints.get(name))

    return check


def _hold(name: str, tensor: mindtorch.Tensor, expected: mindtorch.Tensor, shapes: Any) -> None:
    """AssertionError where a size is neither that of the example nor within its Dim."""
    if tensor.dim() != expected.dim():
        raise AssertionError(f"Guard failed: {name}.dim() == {expected.dim()}, got {tensor.dim()}")
    for at, (size, required) in enumerate(zip(tensor.shape, expected.shape, strict=True)):
        dim = _dim_of(shapes, at)
        if dim is None and size != required:
            raise AssertionError(f"Guard failed: {name}.size()[{at}] == {required}, got {size}")
        if dim is not None and not dim.allows(size):
            raise AssertionError(f"Guard failed: {name}.size()[{at}] within {dim}, got {size}")


def _dim_of(shapes: Any, at: int) -> Dim | None:
    if isinstance(shapes, Mapping):
        entry = shapes.get(at)
    else:
        entry = shapes[at] if isinstance(shapes, Sequence) and at < len(shapes) else None
    return entry if isinstance(entry, Dim) else None


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
    dynamic_shapes: Any = None, strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The graph of a module (torch.export.export); RuntimeError where it depends on data."""
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise RuntimeError(f"Expecting `args` to be a tuple of example inputs, got {type(args)}")
    try:
        graph = symbolic_trace(mod)
    except TraceError as error:
        raise RuntimeError(
            f"torch.export.export: {type(mod).__name__} depends on its data: {error}"
        ) from error
    names = [str(n.target) for n in graph.graph.nodes if n.op == "placeholder"]
    shapes = dynamic_shapes or {}
    if not isinstance(shapes, Mapping):
        shapes = dict(zip(names, shapes, strict=False))
    program = ExportedProgram(graph, mod.state_dict(), shapes, (args, dict(kwargs or {})))
    program.module()(*args, **(kwargs or {}))  # says now what does not run
    return program


def save(ep: ExportedProgram, f: Any, **options: object) -> None:
    """Write an exported program to a file (torch.export.save): to be read by `load` alone."""
    mindtorch.save(ep, f)


def load(f: Any, **options: object) -> ExportedProgram:
    """Read what `save` wrote; as any pickle it may run code, so from sources that are trusted."""
    program: ExportedProgram = mindtorch.load(f, weights_only=False)
    return program
