"""Owns operators of users by torch.library's calls: schema, kernels per device, derivative."""

from __future__ import annotations

import contextlib
import inspect
import sys
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from .._autograd import forward
from .._autograd.function import BY_RULE, Function, refuse_without_context
from .._autograd.grad_mode import LOCAL, MODES
from .._compat.refusals import BACKENDS, without_kernel
from .._dispatch.dispatch_modes import ask_of_user
from .._dispatch.keys import DispatchKey
from .._dispatch.new_sizes import FakeImplCtx
from .._tensor.device import device as Device
from .._tensor.dtype import dtype as Dtype
from .._tensor.subclass import LOCAL as SUBCLASS
from .._tensor.tensor import Tensor
from ..func._batched import Unbatched, innermost
from ..func._user_rules import by_rule
from ..ops.function_schema import FunctionSchema, function_schema
from ..ops.namespaces import DEFINED, OpOverload, OpOverloadPacket, Tag, define as put
from ..ops.schema import SchemaError
from ..utils._pytree import tree_map_only
from .schema_text import check

_DEFINITIONS: dict[str, CustomOpDef] = {}
# Kernels of operators that are not declared yet.
_EARLY: dict[str, list[tuple[str | Sequence[str], Callable[..., Any]]]] = {}
_PACKAGE = __package__.partition(".")[0] + "."
# Dispatch keys that torch.library.impl takes, by the device type they mean; None is any.
_KEYS = {"CPU": "cpu", "PrivateUse1": "npu", "NPU": "npu", "CUDA": "cuda", "Meta": "meta",
         "CompositeExplicitAutograd": None, "CompositeImplicitAutograd": None, "default": None,
         "XPU": "xpu", "MPS": "mps"}  # fmt: skip
_NUMBER: Any = int | float | bool
_RETURNED: dict[Any, str] = {
    Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt", float: "float", bool: "bool", _NUMBER: "Scalar",
}  # fmt: skip
_TO_FIX = (
    " You may have run into this message while using an operator with PT2 compilation APIs"
    " (torch.compile/torch.export); in order to use this operator with those APIs you'll need to"
    " add a fake impl. Please see the following for next steps:  "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)


def _parameter_types() -> dict[Any, str]:
    """What annotations of parameters mean in a schema, in torch's order, which errors show."""
    types: dict[Any, str] = {}

    def lists(item: Any) -> tuple[Any, ...]:
        return (typing.Sequence[item], typing.List[item], Sequence[item], list[item])  # noqa: UP006

    for base, name in ((Tensor, "Tensor"), (int, "SymInt"), (float, "float"), (bool, "bool"),
                       (str, "str"), (_NUMBER, "Scalar"), (Dtype, "ScalarType"),
                       (Device, "Device")):  # fmt: skip
        optional: Any = typing.Optional[base]  # noqa: UP045
        types |= {base: name, optional: f"{name}?"}
        if base not in (str, Dtype, Device):
            types |= dict.fromkeys(lists(base), f"{name}[]")
        if base is Tensor:
            types |= dict.fromkeys(lists(optional), "Tensor?[]")
        if base in (int, float, bool):
            types |= {typing.Optional[item]: f"{name}[]?" for item in lists(base)}  # noqa: UP045
    return types


_TYPES = _parameter_types()


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema that a function's annotations say; ValueError where one is missing or unknown."""
    signature = inspect.signature(prototype_function)
    changed = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(changed, str) and changed != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated"
            " or the string 'unknown'. "
        )
    reader = _Annotations(prototype_function, signature)
    parts: list[str] = []
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(reader.parameter(index, parameter, changed))
    if changed != "unknown" and (unseen := set(changed) - signature.parameters.keys()):
        reader.refuse(
            f"{unseen} in mutates_args were not found in the custom op's signature. mutates_args"
            " should contain the names of all args that the custom op mutates, or just the string"
            " 'unknown' if you don't know."
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {reader.result()}"


def _list_for_tuple(annotation: object) -> str:
    """The list that torch proposes in place of a tuple of one type."""
    if typing.get_origin(annotation) is not tuple:
        return ""
    items = [a for a in typing.get_args(annotation) if a is not ...]
    alike: Any = items[0] if all(item is items[0] for item in items) else None
    instead = f"For example, {list[alike]}." if alike else ""
    return (
        "We do not support Tuple inputs in schema. As a workaround, please try to use List"
        f" instead. {instead}\n\n"
    )


class _Annotations:
    """What the annotations of a function say in a schema's words."""

    def __init__(self, function: Callable[..., Any], signature: inspect.Signature) -> None:
        self.function, self.signature = function, signature

    def refuse(self, what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    def _type(self, annotation: object) -> Any:
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, self.function.__globals__)
        except Exception as error:
            self.refuse(
                f"Unsupported type annotation {annotation}. It is not a type."
                f" ({error}). If you are using 'from __future__ import annotations', note that"
                " annotations are evaluated lazily as strings; make sure all types referenced in"
                " annotations are importable at module scope, not only inside a local function."
            )

    def parameter(self, index: int, parameter: inspect.Parameter, changed: str | set[str]) -> str:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            self.refuse("We do not support positional-only args, varargs, or varkwargs.")
        name = parameter.name
        if parameter.annotation is parameter.empty:
            self.refuse(f"Parameter {name} must have a type annotation.")
        annotation = self._type(parameter.annotation)
        text = _TYPES.get(annotation)
        if text is None:
            self.refuse(
                f"Parameter {name} has unsupported type {parameter.annotation}."
                f" {_list_for_tuple(annotation)}The valid types are: {_TYPES.keys()}."
            )
        is_tensor = text.startswith("Tensor")
        if changed != "unknown" and name in changed and not is_tensor:
            self.refuse(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors"
                " can be mutated"
            )
        if is_tensor and (changed == "unknown" or name in changed):
            text = text.replace("Tensor", f"Tensor(a{index}!)", 1)
        return f"{text} {name}{self._default(parameter)}"

    def _default(self, parameter: inspect.Parameter) -> str:
        value = parameter.default
        if value is parameter.empty:
            return ""
        if isinstance(value, str | Device):
            return f'="{value}"'
        if value is None or isinstance(value, int | float | Dtype):
            return f"={value}".replace("torch.", "")
        self.refuse(
            f"Parameter {parameter.name} has an unsupported default value type {type(value)}."
            " Please file an issue on GitHub so we can prioritize this."
        )

    def result(self) -> str:
        """The schema's results."""
        if self.signature.return_annotation is self.signature.empty:
            self.refuse("No return type annotation was provided. Please add one.")
        hint = self._type(self.signature.return_annotation)
        if hint is None:
            return "()"
        is_tuple = typing.get_origin(hint) is tuple
        texts = [_RETURNED.get(a) for a in (typing.get_args(hint) if is_tuple else (hint,))]
        if None in texts:
            self.refuse(f"Return has unsupported type {hint}. The valid types are: {_RETURNED}.")
        joined = ", ".join(map(str, texts))
        if not is_tuple:
            return joined
        return f"(({joined}))" if len(texts) == 1 else f"({joined})"


FAKE_CONTEXT: ContextVar[FakeImplCtx | None] = ContextVar("FAKE_CONTEXT", default=None)


class CustomOpDef:
    """An operator: call it, or give it kernels, a fake and a derivative."""

    def __init__(
        self,
        name: str,
        schema: str,
        fn: Callable[..., Any] | None = None,
        *,
        from_function: bool = False,
        tags: Sequence[object] = (),
    ):
        self._namespace, _, rest = name.partition("::")
        self._lib = Library(self._namespace, "FRAGMENT")
        self._place = _caller()
        self._name, _, self._overload = rest.partition(".")
        self._qualname = name
        self._schema = schema
        self._kernels: dict[str | None, Callable[..., Any]] = {} if fn is None else {None: fn}
        self._disabled: set[str] = set()
        self._fake: Callable[..., Any] | None = None
        self._backward: Any = None
        self._setup: Any = None
        self._casts: dict[str, Dtype] = {}
        # custom_op's operators have an autograd kernel, refuse results that are their inputs, and
        # run on meta by their fake alone; those of define() do as their kernels do.
        self._from_function = from_function
        self._composite = False
        self._autograd: Callable[..., Any] | None = None
        self._rule: Callable[..., Any] | None = None
        self.rules_of_modes: dict[type, Callable[..., Any]] = {}
        if fn is not None:
            self._init_fn = fn
        self._opoverload = put(
            self._namespace, self._name, self._overload or "default", self.run, self._parsed()
        )
        self._opoverload.tags = list(tags)
        _DEFINITIONS[name] = self
        for key, kernel in _EARLY.pop(name, ()):
            self.impl(key, kernel)

    def _parsed(self) -> FunctionSchema:
        end = f".{self._overload}" if self._overload else ""
        try:
            return function_schema(self._namespace, self._name + end + self._schema)
        except SchemaError as error:
            raise RuntimeError(str(error)) from None

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Choose the kernel by the tensors' device; record the derivative if there is one."""
        values, kwargs = self._opoverload._schema.bind(args, kwargs)
        if self._casts and LOCAL.autocast:
            return self._run_cast(values, kwargs)
        return self._run(tuple(values), kwargs)

    def _run_cast(self, args: Sequence[object], kwargs: dict[str, object]) -> object:
        """Run with the floating inputs cast, where autocast is on for their device."""
        device = next((t.device.type for t in _tensors((*args, *kwargs.values()))), "")
        target, autocast = self._casts.get(device), LOCAL.autocast
        if target is None or device not in autocast:
            return self._run(tuple(args), kwargs)

        def cast(value: object) -> object:
            if isinstance(value, list | tuple):
                return type(value)(map(cast, value))
            if isinstance(value, Tensor) and value.is_floating_point():
                return value.to(target) if value.dtype.itemsize < 8 else value
            return value

        LOCAL.autocast = {k: v for k, v in autocast.items() if k != device}
        try:
            return self._run(tuple(map(cast, args)), {k: cast(v) for k, v in kwargs.items()})
        finally:
            LOCAL.autocast = autocast

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if self._rule is not None and LOCAL.levels and innermost((*args, *kwargs.values())):
            return by_rule(self._rule, args, kwargs)
        tensors = list(_tensors((*args, *kwargs.values())))
        holds = next((t for t in tensors if hasattr(type(t), "_operator_call")), None)
        is_call = self._traces or hasattr(holds, "fake_mode")
        if holds is not None and is_call and not SUBCLASS.off:
            return getattr(holds, "_operator_call")(self._opoverload, args, kwargs)  # noqa: B009
        records = LOCAL.grad and any(t.requires_grad for t in tensors)
        if not records or LOCAL.exclude & DispatchKey.Autograd or self._composite:
            return self._plain(args, kwargs)
        if LOCAL.derivatives and self._autograd is None and self._from_function:
            if not BY_RULE["only_moves"](tensors):
                refuse_without_context(Function)
            return self._plain(*tree_map_only(Tensor, lambda t: t.detach(), (args, kwargs)))
        if self._autograd is not None:
            return self._autograd(*args, **kwargs)
        if self._from_function or self._backward is not None:
            return _recorded(self, args, kwargs)
        return _unregistered(self, args, kwargs)

    @property
    def _traces(self) -> bool:
        """Whether graphs hold it as one call: its results are known without running it."""
        known = self._fake is not None or "meta" in self._kernels
        return known and not self._composite and not self._opoverload._schema.is_mutable

    @property
    def has_autograd(self) -> bool:
        """Whether a derivative is registered where autograd asks for it."""
        formula = self._backward is not None or self._autograd is not None
        return formula or self._from_function or self._composite

    def _plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if MODES.active and LOCAL.dispatches and not self._composite:
            return ask_of_user(self._opoverload, self.rules_of_modes, args, kwargs)
        kernel = self._kernel(args, kwargs)
        if not self._from_function:
            return kernel(*args, **kwargs)
        if LOCAL.levels and innermost((*args, *kwargs.values())):
            raise Unbatched(f"{self._qualname} runs on one element after the other")
        previous, LOCAL.grad = LOCAL.grad, False
        try:
            with forward.plain():  # tangents end here, as in torch
                result = kernel(*args, **kwargs)
        finally:
            LOCAL.grad = previous
        if not (isinstance(kernel, partial) and kernel.func == self._run_fake):
            self._refuse_aliases(result, args, kwargs)
            self._bump_versions(args, kwargs)
        return result

    def _bump_versions(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        schema = self._opoverload._schema
        for argument, value in zip(schema.arguments, (*args, *kwargs.values()), strict=True):
            if argument.is_write:
                for tensor in _tensors((value,)):
                    tensor._bump_version()

    def _kernel(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
        device = next((t.device.type for t in _tensors((*args, *kwargs.values()))), None)
        kernel = self._kernels.get(None)
        if device not in self._disabled:
            kernel = self._kernels.get(device) or kernel
        if device == "meta":
            fake = self._fake and partial(self._run_fake, self._fake)
            on_meta = self._kernels.get("meta") or fake
            kernel = on_meta or (self._no_fake if self._from_function else kernel)
        if kernel is None:
            raise NotImplementedError(
                f"{self._qualname}: attempted to run this operator with Meta tensors, but there was"
                f" no fake impl or Meta kernel registered.{_TO_FIX}"
                if device == "meta"
                else without_kernel(
                    self._qualname,
                    BACKENDS.get(str(device), str(device).upper()),
                    self._backends(),
                    self._from_function or self._autograd is not None,
                )
            )
        return kernel

    def _run_fake(self, fake: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        token = FAKE_CONTEXT.set(FakeImplCtx(self._qualname, getattr(self, "_init_fn", None)))
        try:
            return fake(*args, **kwargs)
        finally:
            FAKE_CONTEXT.reset(token)

    def _backends(self) -> str:
        """The kinds of tensors that have a kernel, as torch lists them."""
        kinds = {BACKENDS.get(str(k), str(k).upper()) for k in self._kernels}
        return " ".join([*sorted(kinds - {"META"}), "Meta"])

    def _no_fake(self, *_: object, **__: object) -> None:
        """The fake of an operator without results; RuntimeError for others."""
        if not self._schema.endswith("-> ()"):
            raise RuntimeError(
                f"There was no fake impl registered for {self}. This is necessary for "
                "torch.compile/export/fx tracing to work. Please use "
                f"`{self._init_fn.__name__}.register_fake` to add an fake impl."
            )

    def _refuse_aliases(self, result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        storages = [t._storage for t in _tensors((*args, *kwargs.values()))]
        for tensor in _tensors((result,)):
            if any(tensor._storage is other for other in storages):
                raise RuntimeError(
                    f"{self._name} (with implementation in "
                    f"<module 'torch._library.custom_ops' from '{__file__}'>): "
                    "The output of this custom operator (1) must not also be an input to this "
                    "custom operator and (2) may not alias any inputs to this "
                    "custom operator or other returns. The most common way to trigger this error "
                    "is if we have y = custom_op(x) and y and x are the same Tensor. Please "
                    "instead return a clone of the offending output tensor(s) (e.g. return "
                    "x.clone()) or refactor the custom operator to not return y."
                )
            storages.append(tensor._storage)

    def register_kernel(
        self,
        device_types: str | Sequence[str | None] | None,
        fn: Callable[..., Any] | None = None,
        /,
    ) -> Any:
        """The function for device types; None means all."""
        types: Sequence[str | None] = (
            [device_types]
            if device_types is None or isinstance(device_types, str)
            else device_types
        )

        def put_kernel(kernel: Callable[..., Any]) -> Callable[..., Any]:
            for kind in types:
                self._kernels[kind and Device(kind).type] = kernel
            return kernel

        return put_kernel if fn is None else put_kernel(fn)

    def impl(self, types: str | Sequence[str], fn: Callable[..., Any] | None = None) -> Any:
        """register_kernel by dispatch keys or device types; `Autograd` is the layer above them."""
        keys = [types] if isinstance(types, str) else list(types)
        if "Autograd" in keys:
            return self._register_autograd_kernel(fn)
        for key in keys:
            _known_key(key)
        self._composite = self._composite or "CompositeImplicitAutograd" in keys
        return self.register_kernel([_KEYS.get(t, t) for t in keys], fn)

    def _register_autograd_kernel(self, fn: Callable[..., Any] | None) -> Any:
        def put_autograd(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self._autograd = kernel
            return kernel

        return put_autograd if fn is None else put_autograd(fn)

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """The function for meta tensors."""

        def put_fake(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self._fake = kernel
            return kernel

        return put_fake if fn is None else put_fake(fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The derivative: `backward(ctx, *grads)`; `setup_context(ctx, inputs, output)` keeps."""
        schema = self._opoverload._schema
        if schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema"
                f" {schema}. Please create a functional operator and register an autograd formula"
                " for that."
            )
        if _has_named_tensors(schema):
            raise NotImplementedError(
                "register_autograd with kwarg-only Tensor args. In the original definition of the"
                f" op, please make your tensors not kwarg-only. Got: {schema}"
            )
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """The function for tensors under vmap: `fn(info, in_dims, *args)` → result, out_dims."""

        def put_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
            self._rule = rule
            return rule

        if fn is None:
            return put_rule
        put_rule(fn)
        return None

    def register_autocast(self, device_type: str, cast_inputs: Dtype) -> None:
        """Cast floating inputs where autocast is on."""
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        Device(device_type)
        self._casts[device_type] = cast_inputs

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Inside, the kernel of a device type is used or, disabled, left for that of all types."""
        previous = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = previous


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _recorded(definition: CustomOpDef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run with one node on the outputs, whose derivative is the definition's."""

    class Recorded(Function):
        @staticmethod
        def forward(ctx: Any, *flat: Any) -> Any:
            result = definition._plain(args, kwargs)
            if definition._setup is not None:
                names = {} if not kwargs else {"keyword_only_inputs": kwargs}
                definition._setup(ctx=ctx, inputs=args, output=result, **names)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if definition._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {definition._opoverload} but no autograd"
                    " formula was registered. Please use register_autograd to add one."
                )
            gradients = definition._backward(ctx, *grads)
            gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
            return (*_spread(args, gradients), None)

    overload = str(definition._opoverload).replace(".", "_")
    Recorded.__name__ = f"GeneratedBackwardFor_{overload}"
    return Recorded.apply(*_flat(args), None)  # torch hands on metadata at the end


def _unregistered(definition: CustomOpDef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operator without derivative: what its kernel records stays, the rest gives None."""
    result = definition._plain(args, kwargs)
    if any(t.requires_grad for t in _tensors((result,))):
        return result
    return without_gradient(definition, args, result)


def without_gradient(definition: CustomOpDef, args: Sequence[Any], result: Any) -> Any:
    """`result` with a node that warns in backward and gives no gradient."""

    class WarnNotImplemented(Function):
        @staticmethod
        def forward(ctx: Any, *flat: Any) -> Any:
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            warnings.warn(
                f"{definition._qualname}: an autograd kernel was not registered to the Autograd "
                "key(s) but we are trying to backprop through it. This may lead to silently "
                "incorrect behavior. Register a derivative with torch.library.register_autograd.",
                stacklevel=2,
            )
            return (None,) * len(_flat(args))

    return WarnNotImplemented.apply(*_flat(args))


def _flat(args: Sequence[Any]) -> list[Any]:
    """Arguments with lists of tensors laid open."""
    return [v for a in args for v in (a if isinstance(a, list | tuple) else (a,))]


def _spread(args: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """The gradients, those of lists laid open too."""
    flat: list[Any] = []
    for arg, grad in zip(args, grads, strict=False):
        if isinstance(arg, list | tuple):
            flat += list(grad) if isinstance(grad, list | tuple) else [None] * len(arg)
        else:
            flat.append(grad)
    return flat + list(grads[len(args) :])


def _has_named_tensors(schema: FunctionSchema) -> bool:
    """Whether a tensor is taken by its name alone."""
    return any(a.kwarg_only and "Tensor" in str(a.type) for a in schema.arguments)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str | None] | None = None,
    schema: str | None = None,
    tags: object | None = None,
) -> Any:
    """Make a function an operator, `torch.ops.<namespace>.<name>`; a decorator without it."""

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        if "::" not in name:
            raise ValueError("not enough values to unpack (expected 2, got 1)")
        space, _, base = name.partition("::")
        check(base + text)
        if _has_named_tensors(function_schema(space, base + text)):
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only."
                f" Got: {base}{text}"
            )
        kernel = function if device_types is None else None
        marks = tuple(dict.fromkeys((Tag.pt2_compliant_tag, *_listed(tags))))
        definition = CustomOpDef(name, text, kernel, from_function=True, tags=marks)
        definition._init_fn = function
        if device_types is not None:
            definition.register_kernel(device_types, function)
        return definition

    return make if fn is None else make(fn)


def declare(name: str, schema: str, tags: object, place: str) -> CustomOpDef:
    """An operator without kernels; RuntimeError where there is one of the name."""
    check(f"{name.partition('::')[2]}{schema}")
    if (first := _DEFINITIONS.get(name)) is not None:
        declared = function_schema(first._namespace, f"{name.partition('::')[2]}{schema}")
        raise RuntimeError(
            f"Tried to register an operator ({declared}) with the same name and"
            " overload name multiple times. Each overload's schema should only be registered with"
            f" a single call to def(). Duplicate registration: registered at {place}. Original"
            f" registration: registered at {first._place}"
        )
    definition = CustomOpDef(name, schema, tags=_listed(tags))
    definition._place = place
    return definition


def _caller() -> str:
    """File and line of the program's call."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _listed(tags: Any) -> Sequence[object]:
    return tuple(tags) if isinstance(tags, list | tuple) else (tags,) if tags else ()


def find(which: Any, asker: str = "") -> CustomOpDef:
    """A definition by its name, itself, or its torch.ops entry; RuntimeError for none.

    `asker` names the function of torch.library in the ValueError for other classes.
    """
    if isinstance(which, CustomOpDef):
        return which
    if isinstance(which, OpOverload):
        which = which.name()
    elif isinstance(which, OpOverloadPacket):
        which = f"{which.namespace}::{which.__name__}"
    if not isinstance(which, str):
        raise ValueError(f"{asker}({which}): got unexpected type for op: {type(which)}")
    definition = _DEFINITIONS.get(which) or _DEFINITIONS.get(which.removesuffix(".default"))
    if definition is None:
        raise RuntimeError(f"operator {which} does not exist")
    return definition


def give(name: Any, types: str | Sequence[str], fn: Callable[..., Any]) -> None:
    """Give an operator a kernel, or keep it until the operator is declared."""
    if isinstance(name, str) and name not in _DEFINITIONS:
        _EARLY.setdefault(name.removesuffix(".default"), []).append((types, fn))
    else:
        find(name).impl(types, fn)


_LIBRARIES: WeakValueDictionary[str, Library] = WeakValueDictionary()


def _known_key(key: str) -> None:
    """RuntimeError for a dispatch key that torch does not have."""
    if key[:1].isupper() and key not in _KEYS and not hasattr(DispatchKey, key):
        raise RuntimeError(f"could not parse dispatch key: {key}")


class Library:
    """A namespace to define operators in, or to give kernels to."""

    ns: str
    dispatch_key: str

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._place = _caller()
        _known_key(dispatch_key)
        if kind == "DEF":
            self._be_the_only_one()
        self._names: list[str] = []

    def _be_the_only_one(self) -> None:
        other = _LIBRARIES.get(self.ns)
        if other is not None or self.ns == "aten":
            raise RuntimeError(
                "Only a single TORCH_LIBRARY can be used to register the namespace"
                f" {self.ns}; please put all of your definitions in a single TORCH_LIBRARY block. "
                " If you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL"
                " (which can be duplicated).  If you really intended to define operators for a"
                " single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to"
                " explicitly indicate this.  Previous registration of TORCH_LIBRARY was registered"
                f" at {other._place if other else __file__}; latest registration was registered at"
                f" {self._place}"
            )
        _LIBRARIES[self.ns] = self

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: object = ()) -> str:
        """Declare an operator by its schema; gives its name."""
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a'
                " TORCH_LIBRARY_IMPL block.  All def()s should be placed in the (unique)"
                " TORCH_LIBRARY block for their namespace.  (Error occurred while processing"
                f" TORCH_LIBRARY_IMPL block at {self._place})"
            )
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name, bracket, rest = schema.partition("(")
        space, _, base = name.strip().rpartition("::")
        if space and space != self.ns:
            raise RuntimeError(
                f"Explicitly provided namespace ({space}) in schema string does not match namespace"
                f" of enclosing TORCH_LIBRARY block ({self.ns}).  Move this definition to the"
                " (unique) TORCH_LIBRARY block corresponding to this namespace (and consider"
                " deleting the namespace from your schema string.)  (Error occurred while"
                f" processing TORCH_LIBRARY block at {self._place})"
            )
        declare(f"{self.ns}::{base}", bracket + rest, tags, self._place)
        self._names.append(f"{self.ns}::{base}")
        return name.strip()

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **_: object
    ) -> None:
        """Give an operator a kernel."""
        name = (
            op_name if not isinstance(op_name, str) or "::" in op_name else f"{self.ns}::{op_name}"
        )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        space = name.partition("::")[0] if isinstance(name, str) else self.ns
        if callable(fn) and space != self.ns:
            raise RuntimeError(
                f'impl("{name}", ...): Explicitly provided namespace ({space}) in operator name'
                f" does not match namespace of enclosing TORCH_LIBRARY block ({self.ns})."
                "  Move this definition to the TORCH_LIBRARY block corresponding to this namespace"
                " (and consider deleting the namespace from your schema string.)  (Error occurred"
                f" while processing TORCH_LIBRARY block at {self._place})"
            )
        if callable(fn) and space == "aten":
            raise NotImplementedError(
                f"Library.impl: {name} is a row; registry.register replaces its kernel"
            )
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        _known_key(key)
        give(name, key, fn)

    def _register_fake(self, op_name: str, fn: Callable[..., Any], **_: object) -> None:
        find(f"{self.ns}::{op_name}").register_fake(fn)

    def _destroy(self) -> None:
        """Take the operators away again."""
        _LIBRARIES.pop(self.ns, None)
        for name in self._names:
            definition = _DEFINITIONS.pop(name, None)
            if definition is not None:
                DEFINED[definition._namespace].pop(definition._name, None)


class _Scoped:
    """`with torch.library._scoped_library(ns, kind) as lib:`."""

    def __init__(self, *args: Any):
        self.library = Library(*args)

    def __enter__(self) -> Library:
        return self.library

    def __exit__(self, *exc: object) -> None:
        self.library._destroy()
