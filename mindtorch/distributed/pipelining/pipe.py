"""Owns Pipe: a model that was traced and cut into stages, each a module of its own parameters.

The trace is of fx: forwards that look at values of tensors are refused, and the batch's size stays
open. Parameters of stages have their names in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from ... import fx
from ..._tensor.device import device as Device
from ...fx.passes.split_module import split_module
from ...nn import Module, Parameter
from .._calls import Group
from .schedules import PipelineStage

_PREFIX = "submod_pp"


class SplitPoint(Enum):
    """Where a module's call is cut off: before it, or behind it."""

    BEGINNING = 1
    END = 2


_tracers: list[_Tracer] = []


def pipe_split() -> None:
    """Begin a stage here, where `pipeline` traces; nothing else."""
    if _tracers:
        _tracers[-1].create_node("call_function", pipe_split, (), {})


class _Tracer(fx.Tracer):
    """Marks the ends of stages at modules that `spec` names."""

    def __init__(self, spec: dict[str, SplitPoint]) -> None:
        super().__init__()
        self._spec = spec

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Enter the module, or leave it a call; with an end of a stage before or behind it."""
        point = self._spec.get(self.path_of_module(m))
        if point is SplitPoint.BEGINNING:
            pipe_split()
        result = super().call_module(m, forward, args, kwargs)
        if point is SplitPoint.END:
            pipe_split()
        return result


def _traced(module: Module, spec: dict[str, SplitPoint]) -> fx.GraphModule:
    tracer = _Tracer(spec)
    _tracers.append(tracer)
    try:
        return fx.GraphModule(module, tracer.trace(module))
    except Exception as error:
        raise RuntimeError(
            "It seems that we cannot capture your model as a full graph. Typical reasons include "
            "graph breaks, data/shape-dependent control flow, or missing meta kernels for custom "
            "operators. You can use our manual pipeline interfaces, or try to fix the graph breaks,"
            " see https://pytorch.org/docs/stable/export.html"
        ) from error
    finally:
        _tracers.pop()


def _assign(module: Module, name: str, value: Any) -> None:
    *parents, last = name.split(".")
    for parent in parents:
        if not hasattr(module, parent):
            module.add_module(parent, Module())
        module = getattr(module, parent)
    if isinstance(value, Parameter) or not hasattr(value, "requires_grad"):
        setattr(module, last, value)
    else:
        module.register_buffer(last, value)


def _sink_values(gm: fx.GraphModule, split: fx.GraphModule) -> None:
    """Give parameters and buffers to the stages that use them, which have them as inputs."""
    for node in [n for n in split.graph.nodes if n.op == "get_attr"]:
        name = str(node.target)
        value: Any = gm
        for atom in name.split("."):
            value = getattr(value, atom)
        for user in list(node.users):
            stage = getattr(split, str(user.target))
            place = user.args.index(node)
            inputs = [n for n in stage.graph.nodes if n.op == "placeholder"]
            _assign(stage, name, value)
            with stage.graph.inserting_before(inputs[-1].next):
                here = stage.graph.get_attr(name)
            inputs[place].replace_all_uses_with(here)
            stage.graph.erase_node(inputs[place])
            user.args = (*user.args[:place], *user.args[place + 1 :])
            stage.recompile()
        split.graph.erase_node(node)
        outer = name.split(".")[0]
        if hasattr(split, outer):
            delattr(split, outer)


def _order_by_use(stage: fx.GraphModule) -> None:
    """Put modules of a stage in the order in which its forward first uses one or what it has;
    those of buffers alone come last."""
    places = {node: i for i, node in enumerate(stage.graph.nodes)}
    parameters = [name for name, _ in stage.named_parameters()]
    when = {}
    for node, i in places.items():
        if node.op in ("call_module", "get_attr"):
            name = str(node.target)
            at = min((places[user] for user in node.users), default=i)
            learns = any(f"{p}.".startswith(f"{name}.") for p in parameters)
            when[name] = not learns, at if node.op == "get_attr" else i
    used = sorted(when, key=when.__getitem__)
    for path, module in list(stage.named_modules()):
        start = f"{path}." if path else ""
        if any(name == path or path.startswith(f"{name}.") for name in used):
            continue  # called whole
        first = {
            child: next(i for i, n in enumerate(used) if f"{n}.".startswith(f"{start}{child}."))
            for child in module._modules
        }
        for child in sorted(first, key=first.__getitem__):
            module._modules[child] = module._modules.pop(child)


class Pipe(Module):
    """Stages of a model, by `get_stage_module`; called, it runs all of them here."""

    def __init__(self, split_gm: fx.GraphModule, num_stages: int) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model computes."""
        return self.split_gm(*args, **kwargs)

    def get_stage_module(self, stage_idx: int) -> Module:
        """A stage; ValueError for one that is not there."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        stage: Module = getattr(self.split_gm, f"{_PREFIX}_{stage_idx}")
        return stage

    def build_stage(
        self, stage_index: int, device: Device | str, group: Group = None
    ) -> PipelineStage:
        """The stage of this process, to be given to a schedule."""
        module = self.get_stage_module(stage_index)
        return PipelineStage(module, stage_index, self.num_stages, device, group=group)

    def print_readable(self) -> None:
        """Print the code of the stages' calls."""
        self.split_gm.print_readable()

    def __str__(self) -> str:
        return str(self.split_gm)

    __repr__ = __str__


def pipeline(
    module: Module, mb_args: tuple[Any, ...], mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None,
) -> Pipe:  # fmt: skip
    """A model's stages: cut at modules that `split_spec` names, else where its forward calls
    `pipe_split`; `split_policy` may change the traced model before.

    ValueError for both, or for what is no SplitPoint; AttributeError for a module that is not
    there; RuntimeError for a model that cannot be traced.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError(
            "Cannot specify both `split_spec` and `split_policy`. Please use only one of them."
        )
    for name, point in (split_spec or {}).items():
        inner = module
        for atom in name.split("."):
            inner = getattr(inner, atom)
        if not isinstance(point, SplitPoint):
            raise ValueError("Unknown split point type.")
    gm = _traced(module, split_spec or {})
    gm = gm if split_policy is None else split_policy(gm)
    stages = 0

    def stage_of(node: fx.Node) -> int:
        nonlocal stages
        stages += (node.op, node.target) == ("call_function", pipe_split)
        return stages

    split = split_module(gm, module, stage_of, partition_affix="pp")
    children = {n: m for n, m in split.named_children() if n.startswith(_PREFIX)}
    for stage in children.values():
        for node in [n for n in stage.graph.nodes if n.target is pipe_split]:
            stage.graph.erase_node(node)
        stage.recompile()
    _sink_values(gm, split)
    split.recompile()
    for stage in children.values():
        _order_by_use(stage)
    return Pipe(split, len(children))
