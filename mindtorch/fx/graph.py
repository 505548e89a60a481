"""Owns graphs: a list of nodes, how it is changed, and the Python code that it stands for."""

from __future__ import annotations

import builtins
import contextlib
import copy
import enum
import importlib
import keyword
import math
import re
import types
import typing
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils._pytree import TreeSpec
from . import _pytree as fx_pytree
from .immutable_collections import immutable_dict as immutable_dict
from .node import Node, Target, _get_qualified_name, _type_repr, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# How a call of an operator's function is written.
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}",
    "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}",
    "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
# Those that Python asks of the right operand where the left one declines.
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in ("add", "sub", "mul", "floordiv", "truediv", "div", "mod", "pow", "lshift",
                 "rshift", "and_", "or_", "xor", "getitem", "matmul")
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)$")


def _torch() -> Any:
    import mindtorch

    return mindtorch


def _own_globals() -> dict[str, Any]:
    """What generated code may name without an import of its own."""
    from ..utils import _pytree as pytree

    torch = _torch()
    return {
        "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": torch,
        "device": torch.device, "fx_pytree": fx_pytree, "pytree": pytree,
    }  # fmt: skip


_OWN_NAMES = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")


def _snake_case(s: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()


def _is_magic(s: str) -> bool:
    return s.startswith("__") and s.endswith("__")


class _Namespace:
    """Names of one scope, each given once."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object) -> str:
        """A name like `candidate` that nothing has; an object is given the same one again."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED.match(candidate)
        base, count = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
        if numbered is None or candidate in self._used_names:
            count = self._base_count.get(base, 0)
        while candidate in self._used_names or self._is_illegal(candidate, obj):
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Let an object have a name that was made before."""
        self._obj_to_name.setdefault(obj, name)

    @staticmethod
    def _is_illegal(name: str, obj: object) -> bool:
        if name in keyword.kwlist:
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        return name in _OWN_NAMES and obj is not _own_globals()[name]


@dataclass
class PythonCode:
    """Generated code: its text, the objects that it names, which line is which node's, by number,
    and how many lines stand before those."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _node_list:  # noqa: N801 - torch's name
    """The nodes of a graph in order; reversed() and len() work."""

    graph: Graph
    direction: str

    def __init__(self, graph: Graph, direction: str = "_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, node = self.graph._root, getattr(self.graph._root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


node_list = _node_list


def _format_target(base: str, target: str) -> str:
    """`base.a.b`, with getattr where a part is no identifier."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class _Writer:
    """Writes one graph's code: names of what is global, then a statement for each node."""

    def __init__(self, codegen: CodeGen, root: str, namespace: _Namespace):
        self.codegen, self.root, self.namespace = codegen, root, namespace
        self.globals: dict[str, Any] = {}
        self.free: list[str] = []
        self.lines: list[tuple[str, Node]] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""

    def named(self, hint: str, obj: object) -> str:
        """The name by which code reaches an object."""
        if _resolves(hint, obj):
            return hint
        home, _, _ = hint.partition(".")
        hint = f"_{hint}" if home == "operator" else hint  # which is C's _operator
        name = self.namespace.create_name(hint, obj)
        self.globals.setdefault(name, obj)
        return name

    def type_name(self, kind: object) -> str:
        """An annotation's text; what it names becomes global."""
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.type_name, typing.get_args(kind)))
        origin = typing.get_origin(kind)
        if origin is None:
            return self.named(_type_repr(kind), kind)
        if isinstance(kind, type(typing.List[int])):  # noqa: UP006
            origin = getattr(typing, origin.__name__.capitalize(), origin)
        name = self.named(_type_repr(origin), origin)
        inner = ",".join(map(self.type_name, typing.get_args(kind)))
        return f"{name}[{inner}]" if inner else name

    def argument(self, arg: object) -> str:
        """An argument's text."""
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            kind = self.named(_type_repr(type(arg)), type(arg))
            return f"{kind}{self.argument(tuple(arg))}"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.argument, arg))}]"
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.argument, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, dict):
            items = (f"{k!r}: {self.argument(v)}" for k, v in arg.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(arg, enum.Enum):
            return f"{self.named(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, slice):
            parts = ", ".join(self.argument(x) for x in (arg.start, arg.stop, arg.step))
            return f"slice({parts})"
        torch = _torch()
        if isinstance(arg, torch.dtype | torch.memory_format | torch.layout):
            return str(arg)
        if isinstance(arg, torch.device):
            return repr(arg)
        if callable(arg) and not isinstance(arg, Node):
            return self.named(_get_qualified_name(arg), arg)
        return repr(arg)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """What stands between a call's parentheses."""
        named = (f"{k} = {self.argument(v)}" for k, v in kwargs.items())
        return ", ".join([*map(self.argument, args), *named])

    def write(self, node: Node) -> None:
        """Add the statement of a node."""
        kind = "" if node.type is None else f" : {self.type_name(node.type)}"
        if node.op == "placeholder":
            self._placeholder(node, kind)
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_name(node.type)}"
            text = self.codegen.generate_output(node.args[0])
            self.lines.append((text if isinstance(text, str) else str(text), node))
        else:
            self.lines.append((self._statement(node, kind), node))

    def _placeholder(self, node: Node, kind: str) -> None:
        target = str(node.target)
        default = f" = {self.argument(node.args[0])}" if node.args else ""
        self.free.append(f"{target}{kind}{default}")
        raw = target.replace("*", "")
        if raw != repr(node):
            self.lines.append((f"{node!r} = {raw}", node))

    def _statement(self, node: Node, kind: str) -> str:
        left = f"{node!r}{kind} = "
        if node.op == "get_attr":
            return left + _format_target(self.root, str(node.target))
        if node.op == "call_module":
            called = _format_target(self.root, str(node.target))
            return f"{left}{called}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            called = _format_target(self.argument(node.args[0]), str(node.target))
            return f"{left}{called}({self.arguments(node.args[1:], node.kwargs)})"
        return self._call(node, left)

    def _call(self, node: Node, left: str) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        plain = getattr(target, "__module__", None) == "_operator" and not node.kwargs
        if plain and name in magic_methods:
            return left + magic_methods[name].format(*map(self.argument, node.args))
        if plain and name in inplace_methods:
            first, *others = map(self.argument, node.args)
            changed = inplace_methods[name].format(first, *others)
            return f"{changed};  {node!r} = {first}"
        if target is getattr and len(node.args) == 2 and not node.kwargs:
            owner, attribute = node.args
            if isinstance(attribute, str) and attribute.isidentifier():
                return left + _format_target(self.argument(owner), attribute)
        called = self.named(_qualified(target), target)
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(called)
        return f"{left}{called}({self.arguments(node.args, node.kwargs)})"


def _qualified(target: Any) -> str:
    try:
        return _get_qualified_name(target)
    except (AttributeError, RuntimeError):
        return getattr(target, "__name__", type(target).__name__)


def _resolves(name: str, obj: object) -> bool:
    """Whether the name, written out, is the object: a builtin's, or one below torch."""
    if name in builtins.__dict__:
        return builtins.__dict__[name] is obj
    top, *rest = name.split(".")
    if top != "torch" or not rest:
        return False
    value = _torch()
    try:
        for part in rest:
            value = getattr(value, part)
    except AttributeError:
        return False
    return value is obj


class CodeGen:
    """How a graph becomes a function's text; subclasses change its signature and its result."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """`def forward(self, …):`."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: object) -> str:
        """`return …`."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: object) -> Any:
        """Arguments of a call as the graph's placeholders take them."""
        return args

    def process_outputs(self, outputs: object) -> Any:
        """The graph's result as a call gives it."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More names for the code."""
        return []

    def _gen_python_code(
        self, nodes: _node_list, root_module: str, namespace: _Namespace, **_: object
    ) -> PythonCode:
        writer = _Writer(self, root_module, namespace)
        for name, value in self.additional_globals():
            writer.named(name, value)
        for node in nodes:
            writer.write(node)
        body = _with_deletions(writer.lines, nodes)
        places = {node: at for at, node in enumerate(nodes)}
        pairs = zip(body, writer.lines, strict=True)
        owners = {id(line): places[node] for line, (_, node) in pairs}
        statements = body  # which keeps the lines alive
        if not body:
            body = ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        head = self.gen_fn_def(writer.free, writer.returns)
        text = "".join("    " + line for line in "".join(body).splitlines(keepends=True))
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        place: int | None = None
        by_line = list[int | None]()
        for line in body:
            place = owners.get(id(line), place)
            by_line += [place] * line.count("\n")
        numbers = dict(enumerate([*by_line, place], 1))
        del statements
        before = f"\n{wraps}\n\n{head}\n"
        return PythonCode(f"{before}{text}    ", writer.globals, numbers, before.count("\n"))


def _with_deletions(lines: list[tuple[str, Node]], nodes: _node_list) -> list[str]:
    """The statements, with names set to None after the last that reads them."""
    last: dict[Node, Node] = {}
    users: dict[Node, list[Node]] = defaultdict(list)
    for node in reversed(nodes):
        for read in dict.fromkeys([*node.all_input_nodes]):
            if read not in last:
                last[read] = node
                users[node].append(read)
    body = []
    for text, node in lines:
        gone = list(users.get(node, ())) if node.op not in ("placeholder", "output") else []
        if node.op not in ("placeholder", "output") and not node.users:
            gone.append(node)
        removed = f";  {' = '.join([repr(n) for n in gone] + ['None'])}" if gone else ""
        body.append(f"{text}{removed}\n")
    return body


@dataclass
class _PyTreeInfo:
    """The names of a function's arguments, and how they and its result lie in containers."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Takes containers apart before the graph, and puts its result together after it."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args: Any) -> Any:
        if self._takes_keywords():
            from ..utils._pytree import tree_flatten

            return tree_flatten(args)[0]
        return fx_pytree.tree_flatten_spec(list(args), self.pytree_info.in_spec)

    def _takes_keywords(self) -> bool:
        """Whether inputs are those of a call: a tuple, and a dictionary."""
        spec = self.pytree_info.in_spec
        kinds = [child.type for child in spec.children()] if spec.type is tuple else []
        return kinds == [tuple, dict]

    def process_outputs(self, outputs: Any) -> Any:
        from ..utils._pytree import tree_unflatten

        if self.pytree_info.out_spec is None:
            return outputs
        values = outputs if isinstance(outputs, list | tuple) else [outputs]
        return tree_unflatten(values, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = list(self.pytree_info.orig_args)
        self_name = names[0] if names and names[0] == "self" else None
        signature = super().gen_fn_def(names, maybe_return_annotation)
        if not free_vars:
            return signature
        inputs = [n for n in names if n != self_name]
        read = f"[{', '.join(inputs)}]"
        if self._takes_keywords():
            count = self.pytree_info.in_spec.child(0).num_children
            words = ", ".join(f"'{n}':{n}" for n in inputs[count:])
            read = f"([{', '.join(inputs[:count])}], {{{words}}})"
        names_text = ", ".join(v.partition(":")[0].partition("=")[0].strip() for v in free_vars)
        return (
            f"{signature}\n    {names_text}, = fx_pytree.tree_flatten_spec({read}, self._in_spec)"
        )

    def generate_output(self, output_args: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"


class _InsertPoint:
    """Where new nodes go, inside a with statement."""

    graph: Graph

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]):
        self.graph, self.before = graph, graph._insert
        graph._insert = new_insert

    def __enter__(self) -> None:
        """Nothing: the place was set when this was made."""

    def __exit__(self, *_: object) -> None:
        self.graph._insert = self.before


class Graph:
    """Nodes in the order in which they run: placeholders, calls, an output."""

    def __init__(
        self,
        owning_module: Module | None = None,
        tracer_cls: type[Any] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ):
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}  # of the code that was traced

    @property
    def owning_module(self) -> Module | None:
        """The module whose attributes the nodes name."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Module | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """All nodes, in order."""
        return _node_list(self)

    def new_name(self, candidate: str) -> str:
        """A name like `candidate` that no node has."""
        return self._graph_namespace.create_name(candidate, None)

    def output_node(self) -> Node:
        """The last node."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError("Graph does not have an output node")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Nodes of a kind, and of a target; functions are found by target alone."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [
            n for n in self.nodes
            if n.op == op and (target is None or op == "output" or n.target == target)
        ]  # fmt: skip

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A new node at the place where nodes are put now."""
        args, kwargs = args or (), kwargs or {}
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        called = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, called, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(called, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target | None) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        name = name or type(target).__name__
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody reads; RuntimeError where one does."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users"
                f" in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go before `n`, or to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go after `n`, or to the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: object = None, default_value: object = ...) -> Node:
        """An argument of the function."""
        args = () if default_value in (..., _empty()) else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        self._warn_if_absent(qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a module below the graph's; AttributeError where it has none of the name."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def _warn_if_absent(self, name: str) -> None:
        owner: Any = self.owning_module
        if owner is None:
            return
        path, _, attribute = name.rpartition(".")
        try:
            holder = owner.get_submodule(path)
        except AttributeError:
            warnings.warn(f"Failed to fetch module {path}!", stacklevel=2)
            holder = None
        value = getattr(holder, attribute, None)
        is_state = isinstance(value, Module | Parameter) or attribute in getattr(
            holder, "_buffers", ()
        )
        if not is_state:
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning"
                " GraphModule! Call GraphModule.add_submodule to add the necessary submodule,"
                " GraphModule.add_parameter to add the necessary Parameter, or"
                " nn.Module.register_buffer to add the necessary buffer",
                stacklevel=3,
            )

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of the first argument's method."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: object, type_expr: object = None) -> Node:
        """What the function gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node, its inputs by `arg_transform`."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Copy another graph's nodes in here; what its output holds, in this graph's nodes."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        copied._codegen, copied._co_fields = copy.deepcopy(self._codegen), self._co_fields
        values: dict[Node, Any] = {}
        ended = copied.graph_copy(self, values, return_output_node=True)
        if ended is not None:
            value, old = ended
            new = copied.output(value, type_expr=getattr(old, "type", None))
            new.meta = copy.copy(old.meta)
        return copied

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out nodes that nobody reads and that do nothing else; whether there were any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Whether nodes are read after they are made, and names are there; RuntimeError if not."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for read in node.all_input_nodes:
                if read.graph is not self:
                    raise RuntimeError(
                        f"Argument '{read}' of Node '{node}' does not belong to this Graph, but was"
                        " used as an argument! If you are copying nodes from another graph, make"
                        " sure to use ``arg_transform`` on node_copy() to remap values\n"
                        f"{self}"
                    )
                if read not in seen:
                    raise RuntimeError(
                        f"Argument '{read}' of Node '{node}' was used before it has been defined!"
                        f" Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
        self._lint_targets()

    def _lint_targets(self) -> None:
        if self.owning_module is None:
            return
        for node in self.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            value: Any = self.owning_module
            for part in str(node.target).split("."):
                if not hasattr(value, part):
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute"
                        f" {part} of {'.'.join(str(node.target).split('.')[:-1])}"
                    )
                value = getattr(value, part)

    def python_code(self, root_module: str, **options: object) -> PythonCode:
        """The graph as the text of a function whose first argument is the module."""
        namespace = _Namespace()
        with self._named_in(namespace):
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    @contextlib.contextmanager
    def _named_in(self, namespace: _Namespace) -> Iterator[None]:
        before = {node: node._repr_fn for node in self.nodes}
        for node in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            yield
        finally:
            for node, label in before.items():
                node._repr_fn = label

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write code in another way."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Any], Any]
    ) -> contextlib.AbstractContextManager[None]:
        """Let the body's lines pass through a function, until a `with` of the result ends; it is
        made from the one before."""
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return until()

    def process_inputs(self, *args: object) -> Any:
        """Arguments as the placeholders take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: object) -> Any:
        """The result as a call gives it."""
        return self._codegen.process_outputs(out)

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this"
                " machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))


def _empty() -> Any:
    import inspect

    return inspect.Signature.empty
