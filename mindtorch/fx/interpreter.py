"""Owns running a graph node by node, so that a subclass may see or change each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, Target, map_aggregate, map_arg
from .proxy import Proxy
from .traceback import preserve_node_meta, set_current_meta
from .tracer import Tracer

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph's nodes in order; `run_node` and a method for each kind may be overridden."""

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ):
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                last = [n for n in node.all_input_nodes if n not in seen]
                seen.update(last)
                self.user_to_last_uses[node] = last

    def run(
        self,
        *args: object,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """The output for these arguments; nodes that `initial_env` has are not run."""
        self.env = {} if initial_env is None else initial_env
        inputs = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter = iter(inputs)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                with set_current_meta(node):
                    self.env[node] = self.run_node(node)
            except Exception as error:
                self._explain(error, node)
                raise
            for gone in self.user_to_last_uses.get(node, ()):
                del self.env[gone]
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def _explain(self, error: Exception, node: Node) -> None:
        if self.extra_traceback:
            text = f"{error.args[0]}\n\n" if error.args else ""
            text += (
                f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}\n"
                "Use tlparse to see full graph."
                " (https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)"
            )
            error.args = (text, *error.args[1:])

    def boxed_run(self, args_list: list[Any]) -> Any:
        """run() of a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """What one node gives, by the method of its kind."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if not isinstance(args, tuple):
            raise AssertionError(type(args))
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as stop:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from stop

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The module's attribute at a path."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result."""
        if isinstance(target, str):
            raise AssertionError(target)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the first argument's method."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the module at a path."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute at a path; RuntimeError where there is none."""
        value: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments, with values for nodes."""
        args, kwargs = self.map_nodes_to_values((n.args, n.kwargs), n)
        return args, kwargs

    def map_nodes_to_values(self, args: object, n: Node) -> Any:
        """Containers with values for nodes; RuntimeError for a node that was not run."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose"
                    " such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Runs a graph with proxies: what its methods do becomes another graph."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            """Adds to the new graph; each module is one node."""

            def __init__(self, graph: Graph):
                super().__init__()
                self.graph = graph
                self.root = module

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An argument of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A node that reads the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that calls the module."""
        return self.tracer.call_module(
            self.fetch_attr(str(target)), self.fetch_attr(str(target)).forward, args, kwargs
        )

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that calls the function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph as a module."""
        with preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def node_of(a: object) -> Any:
                return a.node if isinstance(a, Proxy) else a

            old = self.graph.output_node()
            new = self.new_graph.output(map_aggregate(result, node_of), old.type)
            new.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)
