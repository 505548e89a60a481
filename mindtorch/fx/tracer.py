"""Owns tracing: a call of a module or a function, with proxies for arguments, becomes a graph."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .._autograd.scope import StepScope as _Scope
from .._tensor.tensor import Tensor
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils._pytree import tree_flatten, tree_unflatten
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .node import Node
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

T = TypeVar("T")
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_tracing = 0


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing > 0


class PHBase:
    """In concrete arguments: this leaf is to be traced."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """The same, with what its node is to know."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key

    def transfer_attrs(self, to: Node) -> None:
        """Put what this one knows on its node."""
        for name, value in self.__dict__.items():
            if not hasattr(to, name):
                setattr(to, name, value)


PH = PHBase()


class ProxyableClassMeta(type):
    """Classes whose instances may be made of proxies: making one is a node."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        proxy = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


def _find_proxy(*of: object) -> Proxy | None:
    for leaf in tree_flatten(of)[0]:
        if isinstance(leaf, Proxy):
            return leaf
    return None


def _create_wrapped_func(orig_fn: Any) -> Any:
    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        call = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        call.node.meta["is_wrapped"] = True
        return call

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Any:
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: object, **kwargs: object) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def wrap(fn_or_name: T) -> T:
    """Let a global function, or the one of a name, be one node instead of being traced into."""
    name: str
    if isinstance(fn_or_name, str):
        name = fn_or_name
    elif callable(fn_or_name):
        function: Any = fn_or_name
        name = str(getattr(function, "__name__", type(function).__name__))
    else:
        raise RuntimeError("Unsupported type for global function! Must be either a callable or"
                           " string name")  # fmt: skip
    frame: Any = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


class _Patcher(_Scope):
    """Inside, attributes and names of modules are others; each is put back."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[Callable[[], None]] = []
        self.seen: set[int] = set()

    def name(self, scope: dict[str, Any], name: str, value: object, *, new: bool = False) -> None:
        """Another value of a global name."""
        old = scope.get(name)
        self.undo.append(
            (lambda: scope.pop(name, None)) if new
            else lambda: scope.__setitem__(name, old)
        )  # fmt: skip
        scope[name] = value

    def attribute(self, owner: type, name: str, value: object) -> None:
        """Another value of a class's attribute."""
        old = owner.__dict__.get(name)
        self.undo.append(
            (lambda: delattr(owner, name)) if old is None
            else lambda: setattr(owner, name, old)
        )  # fmt: skip
        setattr(owner, name, value)

    def steps(self) -> Iterator[_Patcher]:
        try:
            yield self
        finally:
            while self.undo:
                self.undo.pop()()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), scope in list(_wrapped_fns_to_patch.items()):
        new = name not in scope
        if new and not hasattr(builtins, name):
            continue
        original = getattr(builtins, name) if new else scope[name]
        patcher.name(scope, name, _create_wrapped_func(original), new=new)
    for cls, name in _wrapped_methods_to_patch:
        patcher.attribute(cls, name, _create_wrapped_method(cls, name))


def _assert_is_none(value: object, message: str) -> None:
    if value is not None:
        raise AssertionError(message)


_assert_is_none.__module__ = "mindtorch.fx._symbolic_trace"  # where torch has it, and code names it


def _tensors_of(module: Module, prefix: str) -> Iterator[tuple[Any, str]]:
    """Tensors that are attributes of modules and neither parameters nor buffers: where they are."""
    for name, value in module.__dict__.items():
        if isinstance(value, Tensor):
            yield value, prefix + name
    for name, child in module.named_children():
        yield from _tensors_of(child, f"{prefix}{name}.")


def _annotations(function: Any) -> dict[str, Any]:
    """A function's annotations; those of layers are tensors, of containers none, as in torch."""
    kinds: dict[str, Any] = getattr(function, "__annotations__", {})
    if not str(getattr(function, "__module__", "")).startswith("mindtorch.nn.modules."):
        return kinds
    return {name: Tensor for name, kind in kinds.items() if kind == "Tensor"}


class Tracer(TracerBase):
    """Traces a module: modules of torch's own are one node each, all others are traced into."""

    root_module_name: str

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ):
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.tensor_attrs: dict[Any, str] = {}

    def create_arg(self, a: object) -> Any:
        """Parameters, buffers and tensors of the module become its attributes' nodes."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            return self._constant(a, "_tensor_constant")
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(type(a), ProxyableClassMeta):
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _constant(self, value: object, stem: str) -> Node:
        name = self.tensor_attrs.get(value)
        if name is None:
            name = self.tensor_attrs[value] = self.get_fresh_qualname(stem)
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: those of torch.nn, but for Sequential."""
        home = type(m).__module__.replace("mindtorch", "torch", 1)
        return home.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """A module's path below the traced one; NameError where it is not there."""
        if self.submodule_paths is not None and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        for name, other in self.root.named_modules(remove_duplicate=False):
            if other is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What happens where the program calls a module."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: object, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What the program reads of a module: parameters, and buffers on demand, as proxies."""
        kinds = [(Parameter, self.root.named_parameters)]
        if self.proxy_buffer_attributes:
            kinds.append((Tensor, self.root.named_buffers))
        for kind, named in kinds:
            if not isinstance(attr_val, kind):
                continue
            for name, value in named():
                if attr_val is value:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self._attribute(name, value)
                    return parameter_proxy_cache[name]
        return attr_val

    def _attribute(self, name: str, value: Tensor) -> Proxy:
        constant = self.param_shapes_constant and isinstance(value, Parameter)
        make = (lambda node: ParameterProxy(self, node, name, value)) if constant else None
        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute's name that the module does not have yet."""
        count = 0
        while hasattr(self.root, f"{prefix}{count}"):
            count += 1
        return f"{prefix}{count}"

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call, and a placeholder's proxy for each of its arguments."""
        fn, called = inspect.unwrap(root_fn), root_fn
        code = fn.__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        args: list[Any] = [self.root] if is_module else []
        if is_module:
            if not names:
                raise RuntimeError("`self` argument cannot be part of *args expansion!")
            names.pop(0)
        defaults = {
            p.name: p.default for p in inspect.signature(fn).parameters.values()
            if p.default is not p.empty
        }  # fmt: skip
        concrete = self._by_name(concrete_args, names)
        args += [self._argument(fn, n, defaults, concrete) for n in names]
        if concrete is not None or code.co_kwonlyargcount or code.co_flags & 12:
            return self._wrapped_root(fn, called, args, concrete, is_module)
        return called, args

    @staticmethod
    def _by_name(concrete: Any, names: list[str]) -> dict[str, Any] | None:
        if isinstance(concrete, tuple):
            if len(names) != len(concrete):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete"
                    " arguments"
                )
            return dict(zip(names, concrete, strict=True))
        return concrete or None

    def _argument(self, fn: Any, name: str, defaults: dict[str, Any], concrete: Any) -> Any:
        default = (defaults[name],) if name in defaults else ()
        if concrete is not None and name in concrete:
            leaves, spec = tree_flatten(concrete[name])
            values = [self._concrete(name, leaf, default, n) for n, leaf in enumerate(leaves, 1)]
            return tree_unflatten(values, spec)
        kind = _annotations(fn).get(name)
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def _concrete(self, name: str, leaf: object, default: tuple[Any, ...], count: int) -> Any:
        import mindtorch

        out: Any = self.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(leaf, PHBase):
            if isinstance(leaf, PHWithMeta):
                leaf.transfer_attrs(out.node)
            return out
        if isinstance(leaf, bool | int | float) and not isinstance(leaf, Tensor):
            mindtorch._assert(
                out == leaf,
                f"{name} has been specialized to have value {leaf} but got another value",
            )
        elif leaf is None:
            check = (out, f"{name} has been specialized to have value None but got another value")
            self.create_proxy("call_function", _assert_is_none, check, {})
        return leaf

    def _wrapped_root(
        self, fn: Any, called: Any, args: list[Any], concrete: Any, is_module: bool
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function with stars handed over, and containers taken apart around it."""
        code = fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        named, stars = code.co_varnames[:count], iter(code.co_varnames[count:])
        for flag, sign in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(self._star(sign, next(stars)))
        # One proxy is all of `*args`, so the function takes each of its names as one argument.
        code = called.__code__
        flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        code = code.replace(
            co_argcount=len(args), co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags
        )
        fn = FunctionType(
            code, called.__globals__, called.__name__, called.__defaults__, called.__closure__
        )

        def call(*_: Any) -> Any:
            return fn(*args)

        if not any(isinstance(v, list | tuple | dict) for v in (concrete or {}).values()):
            return call, args
        parameters = list(named[1:] if is_module else named)
        info = _PyTreeInfo(parameters, tree_flatten(args[1:] if is_module else args)[1], None)
        self.graph._codegen = _PyTreeCodeGen(info)

        def flat(*_: object) -> Any:
            values, info.out_spec = tree_flatten(call())
            return values

        return flat, args

    def _star(self, stars: str, name: str) -> Proxy:
        return self.create_proxy("placeholder", stars + name, (), {}, name=f"_{name}")

    def trace(self, root: object, concrete_args: Mapping[str, object] | None = None) -> Graph:
        """The graph of a module's forward, or of a function."""
        global _tracing
        _tracing += 1
        try:
            return self._traced(root, concrete_args)
        finally:
            _tracing -= 1
            self.submodule_paths = None

    def _traced(self, root: object, concrete_args: Mapping[str, object] | None) -> Graph:
        if isinstance(root, Module):
            self.root: Any = root
            name = self.traced_func_name
            if not hasattr(type(root), name):
                owner = type(root).__name__
                raise AssertionError(f"traced_func_name={name} doesn't exist in {owner}")
            fn = getattr(type(root), name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: n for n, m in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self.tensor_attrs = dict(_tensors_of(self.root, ""))
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        fields = "co_name", "co_filename", "co_firstlineno"
        self.graph._co_fields = {field: getattr(fn.__code__, field) for field in fields}
        scope = fn.__globals__
        call, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with _Patcher() as patcher:
            self._patch(patcher, scope)
            result = self.create_arg(call(*args))
        kind = _annotations(fn).get("return")
        self.create_node("output", "output", (result,), {}, type_expr=kind)
        return self.graph

    def _patch(self, patcher: _Patcher, scope: dict[str, Any]) -> None:
        cache: dict[str, Any] = {}
        plain_getattr, plain_call = Module.__getattr__, Module.__call__

        @functools.wraps(plain_getattr)
        def read(mod: Module, attr: str) -> Any:
            return self.getattr(attr, plain_getattr(mod, attr), cache)

        @functools.wraps(plain_call)
        def call(mod: Module, *args: object, **kwargs: object) -> Any:
            def forward(*args: object, **kwargs: object) -> Any:
                return plain_call(mod, *args, **kwargs)

            self._autowrap(patcher, getattr(mod.forward, "__globals__", {}))
            return self.call_module(mod, forward, args, kwargs)

        patcher.attribute(Module, "__getattr__", read)
        patcher.attribute(Module, "__call__", call)
        _patch_wrapped_functions(patcher)
        self._autowrap(patcher, scope)
        for module in self._autowrap_search:
            self._autowrap(patcher, module.__dict__)

    def _autowrap(self, patcher: _Patcher, scope: dict[str, Any]) -> None:
        if id(scope) in patcher.seen:
            return
        patcher.seen.add(id(scope))
        for name, value in list(scope.items()):
            if not name.startswith("_") and id(value) in self._autowrap_function_ids:
                patcher.name(scope, name, _create_wrapped_func(value))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        copied = Tracer.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied
