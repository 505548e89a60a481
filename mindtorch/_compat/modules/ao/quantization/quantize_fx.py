"""torch.ao.quantization.quantize_fx: models as graphs with observers, and then with integers.

Convolutions, linear layers, sums, products, what puts tensors together, and what moves elements
or keeps their scale are quantised; other calls stay what they are, of dequantised tensors.
NotImplementedError for configurations of one's own.
"""

from __future__ import annotations

import copy
import operator
from collections import Counter
from typing import Any

import mindtorch as torch
from mindtorch import nn
from mindtorch._compat.refusals import refusals
from mindtorch.fx import Graph, GraphModule, Node, Tracer
from mindtorch.nn import functional

from ..nn.intrinsic.modules.fused import LinearReLU
from ..nn.intrinsic.quantized.dynamic import LinearReLU as DynamicLinearReLU
from ..nn.quantized import Dropout as QuantizedDropout
from ._quantized_ops import OPERATORS
from .fuser_method_mappings import _METHODS
from .qconfig import qconfig_equals
from .qconfig_mapping import QConfigMapping
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_static_quant_module_mappings,
)
from .utils import activation_dtype, deprecated

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]
__getattr__ = refusals(
    "torch.ao.quantization.quantize_fx", "mindtorch converts graphs to integers alone",
    ("attach_preserved_attrs_to_model", "convert_to_reference_fx"),
)  # fmt: skip
_RELUS = (nn.ReLU, functional.relu)  # behind layers, and behind sums and products:
_ANY_RELU = (*_RELUS, torch.relu, "relu", "relu_")
_OBSERVED = (torch.relu,)  # what has an observer and is computed of floats
_PAIRS = {
    operator.add: "add", operator.iadd: "add", torch.add: "add",
    operator.mul: "mul", operator.imul: "mul", torch.mul: "mul",
}  # fmt: skip
_FIXED_SCALE = frozenset((nn.Sigmoid, nn.Tanh, torch.sigmoid, torch.tanh, "sigmoid", "tanh"))
_KEEP_SCALE = frozenset((
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d,
    nn.AvgPool3d, nn.Dropout, nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d,
    nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6, functional.adaptive_avg_pool2d,
    functional.avg_pool2d, functional.dropout, functional.max_pool2d, functional.relu,
    functional.relu6, torch.adaptive_avg_pool1d, torch.flatten, torch.mean, torch.narrow,
    torch.squeeze, torch.transpose, torch.unsqueeze, "contiguous", "detach", "mean", "permute",
    "relu", "repeat", "reshape", "squeeze", "transpose", "unsqueeze", "view",
))  # fmt: skip


def _refuse_own(**options: object) -> None:
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"torch.ao.quantization.quantize_fx: {name} is not here")


def _kind(node: Node, modules: dict[str, nn.Module]) -> Any:
    """The class of the module that is called, the function, or the method's name."""
    return type(modules[str(node.target)]) if node.op == "call_module" else node.target


def _only_user(node: Node) -> Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _placed(root: nn.Module, name: str, value: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(root.get_submodule(parent), last, value)


def _traced(model: nn.Module) -> GraphModule:
    model = copy.deepcopy(model)
    return GraphModule(model, Tracer().trace(model))


def _fused(traced: GraphModule, is_qat: bool) -> dict[str, tuple[Any, ...]]:
    """Make one module of neighbours; the classes that those were, by the name that is left."""
    modules = dict(traced.named_modules(remove_duplicate=False))
    classes: dict[str, tuple[Any, ...]] = {}
    longest = max(map(len, _METHODS))
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or str(node.target) not in modules or node.graph is None:
            continue
        chain = [node]
        while len(chain) < longest and (user := _only_user(chain[-1])) is not None:
            if user.op not in ("call_module", "call_function", "call_method"):
                break
            chain.append(user)
        kinds = [nn.ReLU if (k := _kind(n, modules)) in _RELUS else k for n in chain]
        count = next((n for n in range(len(chain), 1, -1) if tuple(kinds[:n]) in _METHODS), 0)
        if not count:
            continue
        first = modules[str(node.target)]
        parts = [
            modules[str(n.target)] if n.op == "call_module" else nn.ReLU().train(first.training)
            for n in chain[:count]
        ]
        name = str(node.target)
        fused = _METHODS[tuple(kinds[:count])](is_qat, *parts)
        _placed(traced, name, fused)
        modules[name] = fused
        classes[name] = (type(fused), *kinds[:count])
        chain[count - 1].replace_all_uses_with(node)
        for gone in reversed(chain[1:count]):
            traced.graph.erase_node(gone)
    return classes


def fuse_fx(
    model: nn.Module, fuse_custom_config: object = None, backend_config: object = None
) -> GraphModule:
    """The model as a graph in which convolutions, norms and ReLU are one module each."""
    _refuse_own(fuse_custom_config=fuse_custom_config, backend_config=backend_config)
    traced = _traced(model)
    _fused(traced, model.training)
    return GraphModule(traced, traced.graph)


_CALLS = ("call_module", "call_function", "call_method")


class _Observing:
    """Puts observers into a graph: behind what is quantised, and before what needs it."""

    def __init__(self, traced: GraphModule, mapping: QConfigMapping, classes: Any) -> None:
        self.traced, self.mapping, self.classes = traced, mapping, classes
        self.modules = dict(traced.named_modules(remove_duplicate=False))
        self.count = 0
        self.observers: dict[Node, nn.Module] = {}  # of nodes that are observers
        self.inputs: dict[Node, Node] = {}  # a value → its observer
        self.results: list[Node] = []  # observers of what nodes compute

    def _observer(self, after: Node, module: nn.Module) -> Node:
        name = f"activation_post_process_{self.count}"
        self.count += 1
        self.traced.add_module(name, module)
        graph = self.traced.graph
        with graph.inserting_after(after):
            node = graph.call_module(name, (after,))
        self.observers[node] = module
        return node

    def _qconfig(self, node: Node) -> Any:
        kinds = (_kind(node, self.modules),)
        if node.op == "call_module":
            name = str(node.target)
            kinds = self.classes.get(name, kinds)
            self._require_one(kinds)
            return self.mapping.of(name, kinds)
        return self.mapping.of("", kinds)

    def _require_one(self, kinds: tuple[Any, ...]) -> None:
        """LookupError where the types that became one module have other QConfigs."""
        each = [self.mapping.of("", (kind,)) for kind in kinds[1:]]
        for kind, qconfig in zip(kinds[2:], each[1:], strict=True):
            if not qconfig_equals(qconfig, each[0]):
                raise LookupError(
                    "During fusion, we need to specify the same qconfigs for all module types in"
                    f" {kinds[0]} offending type: {kind}"
                )

    def _before(self, value: Any, qconfig: Any) -> Any:
        """The observed value that an argument is to be."""
        if isinstance(value, list | tuple):
            return type(value)(self._before(v, qconfig) for v in value)
        if not isinstance(value, Node) or value in self.observers:
            return value
        if value not in self.inputs:
            observed = self.inputs[value] = self._observer(value, qconfig.activation())
            if value.op in _CALLS and self._qconfig(value) is not None:
                self.results.append(observed)
        return self.inputs[value]

    def _after(self, node: Node, module: nn.Module) -> None:
        users = list(node.users)
        observed = self._observer(node, module)
        self.results.append(observed)
        for user in users:
            user.replace_input_with(node, observed)
        self.inputs[node] = observed

    def visit(self, node: Node) -> None:
        """Observe a node where its kind is quantised and it has a QConfig."""
        if node.op not in _CALLS or node in self.inputs:
            return
        kind, qconfig = _kind(node, self.modules), self._qconfig(node)
        first = node.args[0] if node.args else None
        if kind in _KEEP_SCALE:
            if isinstance(first, Node) and first in self.observers:
                self._after(node, self.observers[first])
            return
        if kind in (*_FIXED_SCALE, *_OBSERVED):
            seen = kind in _OBSERVED or (isinstance(first, Node) and first in self.observers)
            if qconfig is not None and seen and not _is_dynamic(qconfig):
                self._after(node, qconfig.activation())
            return
        if qconfig is None:
            return
        if kind is torch.cat:
            self._together(node, qconfig)
            return
        weighted = node.op == "call_module" and kind in _weighted()
        numbers = [a for a in node.args if not isinstance(a, Node)]
        if kind in _PAIRS and numbers and not _is_dynamic(qconfig):
            if isinstance(first, Node):
                observed = self._before(first, qconfig)
                node.args = (observed, *node.args[1:])
                self._after(node, self.observers[observed])
            return
        pair = kind in _PAIRS and all(isinstance(a, Node) for a in node.args)
        if not (weighted or pair):
            return
        if weighted:
            for layer in self.modules[str(node.target)].modules():
                layer.qconfig = qconfig
        dynamic = _is_dynamic(qconfig)
        if dynamic and not weighted:
            return
        node.args = (self._before(first, qconfig), *(
            self._before(a, qconfig) if pair else a for a in node.args[1:]
        ))  # fmt: skip
        relu = _only_user(node)
        if pair and relu is not None and _kind(relu, self.modules) in _ANY_RELU:
            self._after(relu, qconfig.activation())
        elif not dynamic:
            self._after(node, qconfig.activation())

    def _together(self, node: Node, qconfig: Any) -> None:
        """Tensors that are put together, and what they make, have one observer."""
        if _is_dynamic(qconfig):
            return
        node.args = (self._before(node.args[0], qconfig), *node.args[1:])
        each: Any = node.args[0]
        first = self.observers[each[0]]
        for other in each:
            self.observers[other] = first
            self.traced.add_module(str(other.target), first)
        self._after(node, first)


def _is_dynamic(qconfig: Any) -> bool:
    return bool(getattr(qconfig.activation(), "is_dynamic", False)) or (
        activation_dtype(qconfig) in (torch.float32, torch.float16)
    )


def _weighted() -> set[Any]:
    static = get_default_static_quant_module_mappings()
    qat = get_default_qat_module_mappings()
    takes = {*static, *qat, *qat.values(), *get_default_dynamic_quant_module_mappings()}
    return {k for k in takes if isinstance(k, type) and _is_layer(k)}


def _is_layer(kind: type) -> bool:
    names = ("Linear", "Conv")
    return any(base.__name__.startswith(names) for base in kind.__mro__)


def _prepared(
    model: nn.Module, qconfig_mapping: QConfigMapping | dict[str, Any], is_qat: bool
) -> GraphModule:
    mapping = qconfig_mapping
    if isinstance(mapping, dict):
        mapping = QConfigMapping.from_dict(mapping)
    traced = _traced(model)
    classes = _fused(traced, is_qat)
    observing = _Observing(traced, mapping, classes)
    nodes = list(traced.graph.nodes)
    if is_qat:
        swaps = get_default_qat_module_mappings()
        for node in nodes:
            module = observing.modules.get(str(node.target)) if node.op == "call_module" else None
            qconfig = None if module is None else observing._qconfig(node)
            if qconfig is not None and type(module) in swaps:
                assert module is not None
                for layer in module.modules():
                    layer.qconfig = qconfig
                learning = swaps[type(module)].from_float(module)
                _placed(traced, str(node.target), learning)
                observing.modules[str(node.target)] = learning
                before = classes.get(str(node.target), ())
                classes[str(node.target)] = (type(learning), type(module), *before)
    for node in nodes:
        if node not in observing.observers:
            observing.visit(node)
    prepared = GraphModule(traced, traced.graph)
    results = {str(n.target) for n in observing.results}
    prepared.meta["observed"] = {str(n.target) for n in observing.observers}, results
    return prepared


@deprecated
def prepare_fx(
    model: nn.Module, qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[object, ...], prepare_custom_config: object = None,
    _equalization_config: object = None, backend_config: object = None,
) -> GraphModule:  # fmt: skip
    """A graph of a model that has learned, with observers that see what is then computed."""
    _refuse_own(
        prepare_custom_config=prepare_custom_config, backend_config=backend_config,
        _equalization_config=_equalization_config,
    )  # fmt: skip
    return _prepared(model, qconfig_mapping, False)


@deprecated
def prepare_qat_fx(
    model: nn.Module, qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: tuple[object, ...], prepare_custom_config: object = None,
    backend_config: object = None,
) -> GraphModule:  # fmt: skip
    """A graph of a model that is to learn with what quantisation makes of its values."""
    _refuse_own(prepare_custom_config=prepare_custom_config, backend_config=backend_config)
    return _prepared(model, qconfig_mapping, True)


class _Converting:
    """Builds the graph of integers of one with observers."""

    def __init__(self, observed: GraphModule) -> None:
        self.observed, self.graph = observed, Graph()
        self.modules = dict(observed.named_modules(remove_duplicate=False))
        self.names, self.results = observed.meta["observed"]
        self.floats: dict[Node, Node] = {}
        self.integers: dict[Node, Node] = {}
        self.places: dict[Node, int] = {}
        self.numbers: Counter[str] = Counter()  # of scales by their prefix, those unused too
        self.scaled: set[Node] = set()  # observers whose scale has its number
        self.taken = {node.name for node in observed.graph.nodes}
        self.root = copy.copy(observed)

    def float_of(self, node: Node) -> Node:
        """The value as floats, dequantised where there are only integers."""
        if node not in self.floats:
            place = self.places[node]
            name = f"dequantize_{place}" if place else "dequantize"
            call = self.graph.create_node("call_method", "dequantize", (self.integers[node],), {},
                                          name)  # fmt: skip
            self.floats[node] = call
        return self.floats[node]

    def _constants(self, prefix: str, observer: Any) -> list[Node]:
        """The scale and the zero point as buffers of the model."""
        scale, zero_point = observer.calculate_qparams()
        number, nodes = self.numbers[prefix], []
        self.numbers[prefix] += 1
        pairs = (("scale", scale.float()), ("zero_point", zero_point.int()))
        for what, value in pairs:
            name = f"{prefix}{what}_{number}"
            self.observed.register_buffer(name, value.detach().reshape(()))
            nodes.append(self.graph.get_attr(name))
        return nodes

    def _quantized(self, node: Node) -> None:
        """An observer's value: integers of what was computed as such, or call of floats."""
        source, observer = node.args[0], self.modules[str(node.target)]
        assert isinstance(source, Node)
        self.places[node] = place = len(self.places)
        if source in self.integers:
            self.integers[node] = self.integers[source]
            self.float_of(node)
            self.numbers["_"] += source.op != "call_module" and node not in self.scaled
            return
        # torch names the constants of what is observed at a layer's input after the layer, where
        # what gives the value has no settings of its own; else after what gives it.
        layer, end = (source, "_")
        if str(node.target) not in self.results:
            layer, end = next(iter(node.users)), "_input_"
        prefix = f"{layer.target}{end}" if layer.op == "call_module" else end
        prefix = prefix.replace(".", "_")
        scale, zero_point = self._constants(prefix, observer)
        args = (self.float_of(source), scale, zero_point, observer.dtype)
        self.integers[node] = self.graph.create_node(
            "call_function",
            torch.quantize_per_tensor,
            args,
            {},
            f"quantize_per_tensor_{place}" if place else "quantize_per_tensor",
        )

    def _inputs(self, value: Any, integers: bool) -> Any:
        def of(node: Node) -> Node:
            return (
                self.integers[node] if integers and node in self.integers else self.float_of(node)
            )

        return torch.fx.node.map_arg(value, of)

    def _copy(self, node: Node, integers: bool) -> Node:
        args, kwargs = self._inputs(node.args, integers), self._inputs(node.kwargs, integers)
        call = self.graph.create_node(node.op, node.target, args, kwargs, node.name)
        (self.integers if integers else self.floats)[node] = call
        return call

    def visit(self, node: Node) -> None:
        """Make a node of the new graph, or several."""
        if node.op == "call_module" and str(node.target) in self.names:
            if _dynamic(self.modules[str(node.target)]):
                source = node.args[0]
                assert isinstance(source, Node)
                self.floats[node] = self.float_of(source)
                self.places[node] = len(self.places)
            else:
                self._quantized(node)
            return
        kind = _kind(node, self.modules) if node.op.startswith("call_") else None
        observed = _only_user(node) if node.users else None
        behind = [u for u in node.users if u.op == "call_module" and str(u.target) in self.names]
        module = self.modules.get(str(node.target)) if node.op == "call_module" else None
        qconfig = getattr(module, "qconfig", None)
        if module is not None and qconfig is not None and kind in _weighted():
            self._layer(node, module, not _is_dynamic(qconfig))
        elif node in self.integers:
            return
        elif kind in _KEEP_SCALE | _FIXED_SCALE and behind and node.args[0] in self.integers:
            if kind is nn.Dropout:
                self._dropout(node)
            self._copy(node, True)
        elif kind is torch.cat and behind:
            self._copy(node, True)
        elif kind in _PAIRS:
            relu = observed if observed is not None and observed.op.startswith("call_") else None
            both = relu is not None and _kind(relu, self.modules) in _ANY_RELU and any(
                str(u.target) in self.names for u in relu.users
            )  # fmt: skip
            last = relu if both and relu is not None else node
            seen = [u for u in last.users if str(u.target) in self.names]
            if not seen:
                self._copy(node, False)
            else:
                self._pair(node, kind, last, seen[0])
        else:
            reads = node.op == "call_method" and node.target == "size"
            call = self._copy(node, reads)
            self.floats[node] = call

    def _pair(self, node: Node, kind: Any, last: Node, observer: Node) -> None:
        name = _PAIRS[kind] + ("_relu" if last is not node else "")
        args = self._inputs(node.args, True)
        if all(isinstance(a, Node) for a in args):
            args = (*args, *self._constants("_", self.modules[str(observer.target)]))
            self.scaled.add(observer)
        names = (f"{name}_{k}" if k else name for k in range(len(self.taken) + 1))
        free = next(n for n in names if n not in self.taken)
        self.taken.add(free)
        call = self.graph.create_node("call_function", OPERATORS[name], args, {}, free)
        self.integers[node] = self.integers[last] = call

    def _layer(self, node: Node, module: Any, static: bool) -> None:
        kinds = get_default_static_quant_module_mappings()
        if not static:
            kinds = get_default_dynamic_quant_module_mappings()
        kind = kinds.get(type(module), DynamicLinearReLU if type(module) is LinearReLU else None)
        assert kind is not None, type(module)
        if static:
            observer = next(u for u in node.users if str(u.target) in self.names)
            module.activation_post_process = self.modules[str(observer.target)]
        _placed(self.observed, str(node.target), kind.from_float(module))
        self._copy(node, static)

    def _dropout(self, node: Node) -> None:
        module = self.modules[str(node.target)]
        if type(module) is nn.Dropout:
            _placed(self.observed, str(node.target), QuantizedDropout.from_float(module))


def _dynamic(observer: Any) -> bool:
    return bool(getattr(observer, "is_dynamic", False)) or observer.dtype in (
        torch.float32, torch.float16,
    )  # fmt: skip


@deprecated
def convert_fx(
    graph_module: GraphModule, convert_custom_config: object = None, _remove_qconfig: bool = True,
    qconfig_mapping: object = None, backend_config: object = None,
    keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """What a graph with observers computes with integers."""
    _refuse_own(
        convert_custom_config=convert_custom_config, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config, keep_original_weights=keep_original_weights,
    )  # fmt: skip
    if not isinstance(graph_module, GraphModule):
        raise ValueError(
            f"input model must be a GraphModule, Got type:{type(graph_module)} Please make sure to"
            " follow the tutorials."
        )
    observed = copy.deepcopy(graph_module)
    observed.meta["observed"] = graph_module.meta["observed"]
    converting = _Converting(observed)
    for node in observed.graph.nodes:
        converting.visit(node)
    converting.graph.eliminate_dead_code()
    return GraphModule(observed, converting.graph)
