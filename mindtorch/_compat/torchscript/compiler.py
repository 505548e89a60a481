"""Lowers functions and methods of Python, each once."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from mindtorch.nn.modules.module import Module

from .annotations import kind_of
from .classes import methods_of, module_type
from .cleanup import clean, normalise
from .errors import FrontendError, NotSupportedError, ScriptError, check
from .graph import Graph, NotLowered
from .kinds import INFERRED, NONE
from .schemas import MISSING, ScriptArgument, ScriptDeclaration
from .sources import source_of
from .ssa import has_meaning, to_single_assignment
from .statements import StatementLowering
from .sugar import FunctionChoice, IgnoredFunction, ModuleObject, Simple, Sugar
from .unit import HOOKS, ClassType, LoweredFunction, modifier_of, module_path, unique_name

_COMPILED: dict[object, LoweredFunction] = {}
_UNDER_WAY: set[tuple[object, object]] = set()


def function_of(value: Any) -> Sugar:
    """A function of Python as a program calls it: lowered once, or left to Python."""
    plain = getattr(value, "_function", value)
    modifier = modifier_of(plain)
    if modifier in ("ignore", "unused"):
        return IgnoredFunction(declaration(plain, None), modifier == "unused")
    return FunctionChoice([compiled(plain)])


def compiled(function: Callable[..., Any]) -> LoweredFunction:
    """A function, lowered when it is first met."""
    if function not in _COMPILED:
        _COMPILED[function] = compile_function(function, None)
    return _COMPILED[function]


def check_function(function: Callable[..., Any]) -> None:
    """Lower a function as it is scripted; RuntimeError for one that is certainly refused."""
    check(lambda: compiled(function))


def check_module(module: Module) -> None:
    """Lower `forward` and what is exported as a module is scripted."""

    def lower() -> None:
        kind = module_type(module)
        for name, function in methods_of(kind.source).items():
            if name == "forward" or modifier_of(function) == "export":
                kind.method(name)

    check(lower)


def names_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The names that a function's text can use: its module's and those that it closes over."""
    names = dict(getattr(function, "__globals__", {}))
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue  # not yet set
    return names


def declaration(function: Callable[..., Any], owner: ClassType | None) -> ScriptDeclaration:
    """A function's declaration by its annotations; what has none is a tensor."""
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function, localns=dict(names_of(function)))
    except NameError as error:
        raise NotLowered(f"Unknown type name '{error.name}'") from error
    arguments = []
    for index, parameter in enumerate(signature.parameters.values()):
        if owner is not None and index == 0:
            arguments.append(ScriptArgument(parameter.name, owner.kind))
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise NotSupportedError(
                "Compiled functions can't take variable number of arguments or use keyword-only"
                " arguments with defaults"
            )
        name = parameter.name
        kind = kind_of(hints[name]) if name in hints else INFERRED
        default = parameter.default
        default = MISSING if default is inspect.Parameter.empty else default
        if isinstance(default, list | dict | set):
            raise ScriptError(
                "Mutable default parameters are not supported because Python binds them to the"
                " function and they persist across function calls.\n As a workaround, make the"
                " default None and instantiate the default parameter within the body of the"
                f" function. Found {type(default)} on parameter {name}",
                True,
            )
        if kind.kind == "float" and isinstance(default, int) and not isinstance(default, bool):
            default = float(default)
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        arguments.append(ScriptArgument(name, kind, default, keyword=by_name))
    returns = [kind_of(hints["return"])] if "return" in hints else []
    return ScriptDeclaration(function.__name__, "", arguments, returns)


def compile_function(function: Callable[..., Any], owner: ClassType | None) -> LoweredFunction:
    """The lowered function: declaration and graph."""
    plain = inspect.unwrap(function)
    name, key = plain.__name__, (plain, owner)
    if key in _UNDER_WAY:
        what = "function" if owner is None else "method"
        raise ScriptError(
            f" {what} '{name}' is called recursively. Recursive calls are not supported", True
        )
    qualified = (
        f"{owner.qualified}.{name}" if owner
        else unique_name(f"{module_path(plain.__module__)}.{name}")
    )  # fmt: skip
    source = source_of(plain)
    try:
        schema = declaration(plain, owner)
    except (FrontendError, ScriptError) as error:
        error.found_at(source, source.tree)
        raise
    scope = StatementLowering(source, names_of(plain), owner)
    scope.declared = schema.returns[0] if schema.returns else None
    result = LoweredFunction(name, qualified, schema)
    _UNDER_WAY.add(key)
    try:
        _lower(scope, schema, owner)
    finally:
        _UNDER_WAY.discard(key)
    result.made_graph = scope.graph
    return result


def _lower(scope: StatementLowering, schema: ScriptDeclaration, owner: ClassType | None) -> None:
    graph, tree = scope.graph, scope.source.tree
    names = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    places = [
        scope.place(a) for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)
    ]
    with scope.framed(graph.block):
        for index, (argument, place) in enumerate(zip(schema.arguments, places, strict=True)):
            value = graph.block.entry.add_output(argument.kind)
            local = owner is not None and index == 0
            if local or has_meaning(argument.name):
                value.named(argument.name)
            sugar: Sugar = Simple(value)
            if local and owner is not None and owner.is_module:
                sugar = ModuleObject(value, owner)
            scope.set(place, names[index], sugar)
        scope.statements(tree.body)
        if graph.block not in scope.left:
            if scope.declared is not None and scope.declared != NONE:
                raise NotLowered(
                    "Function was not annotated as having type None, but does not return along all"
                    " paths"
                )
            scope.give_back(scope.place(tree), None)
        returned = scope.returned or scope.declared or NONE
        placeholder = graph.insert("prim::Uninitialized", (), (returned,)).output
        graph.block.exit.add_input(placeholder)
    schema.returns[:] = [returned]
    to_single_assignment(graph)
    normalise(graph)
    clean(graph)


def _graph_of(
    function: Callable[..., Any], owner: ClassType, schema: ScriptDeclaration
) -> Graph:  # fmt: skip
    """The graph of a layer's method, whose declaration is torch's and whose text is not."""
    scope = StatementLowering(source_of(function), names_of(function), owner)
    scope.declared = schema.returns[0]
    _lower(scope, schema, owner)
    return scope.graph


HOOKS.declaration = declaration
HOOKS.graph_of = _graph_of
HOOKS.compile_function = compile_function
HOOKS.function_of = function_of
