"""Owns torch.fx.experimental.proxy_tensor.make_fx: a function's graph of ATen operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from ..._tensor.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...ops.namespaces import namespace
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten
from ..aten import AtenRecorder
from ..call_sites import root_call
from ..decompositions import TABLE, CoreRecorder, linear_of_columns
from ..fake import meta_like
from ..graph_module import GraphModule
from ..node import Node
from ..recorder import TracedTensor


def _linear(r: CoreRecorder, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> object:
    columns = namespace("aten").t.default(weight)
    return linear_of_columns(x, columns, weight.shape[0], bias)


def _batch_norm(r: CoreRecorder, x: Tensor, *args: object) -> object:
    return r.put("native_batch_norm", x, *args[:7])[0]


# Below autograd less is made of other operators than in core ones.
_TABLE: dict[str, Callable[..., Any]] = {
    **{k: v for k, v in TABLE.items() if k not in ("mse_loss", "silu", "t", "transpose")},
    "batch_norm": _batch_norm, "linear": _linear,
}  # fmt: skip


class _FxRecorder(CoreRecorder):
    """Tensors that no call made are attributes of the module."""

    table = _TABLE
    infers_sizes = notes_lines = False

    def __init__(self) -> None:
        super().__init__()
        self.attributes: dict[str, Tensor] = {}

    def lift(self, tensor: Tensor) -> Node:
        kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
        name = f"{kind}{sum(n.startswith(kind) for n in self.attributes)}"
        self.attributes[name] = tensor
        return self.graph.create_node("get_attr", name)


class _PreDispatchRecorder(_FxRecorder):
    table: dict[str, Callable[..., Any]] = {}


def make_fx(
    f: Callable[..., Any], decomposition_table: Mapping[object, object] | None = None,
    tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *,
    pre_dispatch: bool = False, **_: object,
) -> Callable[..., GraphModule]:  # fmt: skip
    """What traces `f` with the arguments of a call, whose sizes are the graph's (make_fx)."""

    def traced(*args: object) -> GraphModule:
        recorder = _PreDispatchRecorder() if pre_dispatch else _FxRecorder()
        leaves, spec = tree_flatten(args)
        names = _names(f, len(leaves))
        inputs = [_input(recorder, n, v) for n, v in zip(names, leaves, strict=True)]
        with recorder.inside():
            result = root_call(f, tree_unflatten(inputs, spec), {})
        recorder.graph.output(tree_map(recorder.argument, result))
        root = recorder.root
        for name, tensor in recorder.attributes.items():
            if isinstance(tensor, Parameter):
                root.register_parameter(name, tensor)
            else:
                root.register_buffer(name, tensor)
        label = "<lambda>" if isinstance(f, Module) else getattr(f, "__name__", type(f).__name__)
        return GraphModule(root, recorder.graph, label)

    return traced


def _input(recorder: AtenRecorder, name: str, value: object) -> object:
    node = recorder.graph.placeholder(name)
    if not isinstance(value, Tensor):
        return value
    traced: TracedTensor = recorder.traced((meta_like(value, value.shape),), node, value.device)
    return traced


def _names(f: Callable[..., Any], count: int) -> list[str]:
    code: CodeType | None = getattr(f, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS or code.co_argcount < count:
        return [f"arg{i}_1" for i in range(count)]
    return [f"{name}_1" for name in code.co_varnames[:count]]


def get_proxy_mode() -> None:
    """None: nothing is being traced."""
