"""Owns a tracer that reads `forward` with assertions as calls, so that they are in the graph."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Mapping
from types import FunctionType
from typing import cast

import mindtorch

from ...nn.modules.module import Module
from .._symbolic_trace import Tracer
from ..graph import Graph


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801 - torch's name
    """`assert test, message` as `torch._assert(test, message)`."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """A function of the text that was changed, with the function's names around it."""
        source = textwrap.dedent(inspect.getsource(fn))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        names = {**fn.__globals__, "torch": mindtorch}
        scope = fn.__globals__ if fn.__globals__.get("torch") is mindtorch else dict(names)
        exec(compile(tree, "", "exec"), names)
        rewritten = cast(FunctionType, names[fn.__name__])
        function = FunctionType(
            rewritten.__code__, scope, fn.__name__, fn.__defaults__,
            fn.__closure__ if rewritten.__code__.co_freevars else None,
        )  # fmt: skip
        function.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return function

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """The call in the assertion's place."""
        called = ast.parse("torch._assert()", mode="eval").body
        assert isinstance(called, ast.Call)
        called.args = [node.test, node.msg if node.msg is not None else ast.Constant("")]
        return ast.copy_location(ast.Expr(called), node)


class RewritingTracer(Tracer):
    """Traces modules whose `forward` is read in that way."""

    def trace(self, root: object, concrete_args: Mapping[str, object] | None = None) -> Graph:
        """The graph of a module, assertions included."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: object) -> object:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(cast(FunctionType, fn))
    module = copy.copy(fn)
    module.__dict__ = dict(fn.__dict__)
    module._modules = {
        name: cast(Module, _rewrite(child)) if child is not None else None
        for name, child in fn._modules.items()
    }
    if not type(fn).__module__.startswith("mindtorch."):
        forward = AST_Rewriter().rewrite(cast(FunctionType, type(fn).forward))
        kind = type(type(fn).__name__, (type(fn),), {"forward": forward})
        kind.__module__ = type(fn).__module__
        module.__class__ = kind
    return module
