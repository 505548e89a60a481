"""Owns autograd.Function: derivatives that users write as a pair of static methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .._compat.warn_once import warn
from .._tensor.dtype import FLOAT
from .._tensor.storage import add_view
from .._tensor.tensor import Tensor, wrap
from ..ops.spec import aten
from .codegen import edge
from .forward import plain
from .grad_mode import LOCAL
from .node import FREED, STATE, AccumulateGrad, Node, SavedTensor, keep
from .shadowing import OUR_NAMES, asked_by_program, shadowing
from .user_jvp import Moving, carry, run_jvp, tangents_of, transposed
from .views import rebase


class FunctionNode(Node):
    """The node and the `ctx` of one call of a user's Function."""

    materialize_grads: bool

    def __init__(self) -> None:
        super().__init__()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.to_save: tuple[Any, ...] = ()
        self.non_differentiable: set[int] = set()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.saved_for_forward: tuple[Any, ...] = ()
        self.geoms: tuple[Any, ...] = ()  # of the inputs, None for those that are no tensors

    _function: Any

    def __setattr__(self, name: str, value: object) -> None:
        if name in OUR_NAMES and asked_by_program():
            vars(self).setdefault("_attributes_of_program", {})[name] = value
            self.__class__ = shadowing(type(self))
        else:
            super().__setattr__(name, value)

    def next_edges(self) -> tuple[Any, ...]:
        pairs = zip(self.edges, self.geoms, strict=True)
        return tuple(e for e, geom in pairs if geom is not None)

    def _attributes(self) -> tuple[str, ...]:
        return (*super()._attributes(), *(n for n in dir(type(self)) if n in vars(FunctionNode)))

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs; they are given back by `saved_tensors`, checked."""
        self.to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:  # type: ignore[override]
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple(None if s is None else self.unpack(s) for s in self.saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """An older name of saved_tensors."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor | None, ...]:
        if self.saved is None:
            raise RuntimeError(FREED)
        return tuple(None if s is None else SavedTensor(self, i) for i, s in enumerate(self.saved))

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which reads them as `saved_tensors`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` wrote to."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs need no gradient."""
        if not all(isinstance(t, Tensor) for t in tensors):
            raise RuntimeError("mark_non_differentiable only accepts variable arguments, but got ")
        self.non_differentiable = {id(t) for t in tensors}

    def mark_shared_storage(self, *pairs: object) -> None:
        """An older promise that needs not be made."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically"
            " tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined gradients reach `backward` as zeros (true) or None."""
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got (), but"
                " expected (bool)"
            )
        self.materialize_grads = value

    def apply(self, grads: list[Any]) -> Any:
        if self.saved is None:
            raise RuntimeError(FREED)
        if self.materialize_grads:
            grads = [
                aten.zeros(g.shape, dtype=g.dtype, device=g.device) if v is None and g else v
                for g, v in zip(self.outs, grads, strict=True)
            ]
        function = self._function
        if LOCAL.pushing and not function.__module__.startswith(_PACKAGE):
            return transposed(function.jvp, self, grads)
        backward = function.backward
        if function.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed."
                    " You should only implement one of them."
                )
            backward = function.vjp
        grads_in = backward(self, *grads)
        grads_in = list(grads_in) if isinstance(grads_in, tuple) else [grads_in]
        return self._checked(grads_in)

    def _checked(self, grads_in: list[Any]) -> list[Any]:
        count = len(self.edges)
        if len(grads_in) > count and all(v is None for v in grads_in[count:]):
            grads_in = grads_in[:count]
        if len(grads_in) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients"
                f" (expected {count}, got {len(grads_in)})"
            )
        for place, value in enumerate(grads_in):
            if value is not None and self.geoms[place] is None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position"
                    f" {place + 1}, but the corresponding forward input was not a Variable"
                )
            if value is not None and not isinstance(value, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(value).__name__})")
            if value is not None and self.edges[place] is not None:
                self._refuse_gradient(place, value)
        return grads_in

    def _refuse_gradient(self, place: int, value: Tensor) -> None:
        """RuntimeError in torch's words for a gradient of another device, or a complex one."""
        geom = self.geoms[place]
        if value.device != geom.device and value.dim():
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {place} - expected"
                f" device {geom.device} but got {value.device}"
            )
        if value.is_complex() and not geom.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex =="
                " grad_is_complex) to be true, but got false.  (Could this error message be"
                " improved?  If so, please report an enhancement request to PyTorch.)"
            )


FunctionCtx = FunctionNode


class BackwardCFunction(FunctionNode):
    """What the nodes of a program's functions are, by torch's name."""


def once_differentiable(fn: Callable[..., Any]) -> Any:
    """Mark a `backward` whose result has no gradient: going through it again is a RuntimeError."""

    @functools.wraps(fn)
    def inside(ctx: FunctionNode, *grads: Any) -> Any:
        recording = LOCAL.grad
        LOCAL.grad = False
        try:
            result = fn(ctx, *grads)
        finally:
            LOCAL.grad = recording
        if not (recording and any(isinstance(g, Tensor) and g.requires_grad for g in grads)):
            return result
        return _barred(result)

    return inside


def _barred(result: Any) -> Any:
    several = isinstance(result, tuple)
    values = result if several else (result,)
    shut = barrier(
        "trying to differentiate twice a function that was marked with @once_differentiable",
        [v.detach().requires_grad_() if isinstance(v, Tensor) else v for v in values],
    )
    return shut if several else shut[0]


class Function:
    """Subclass with static `forward(ctx, *args)` and `backward(ctx, *grads)`; call `apply`."""

    _node_class: Any = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all"
            " static, so you should invoke them on the class itself. Instantiating an autograd"
            " function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use"
            " new-style autograd function with static forward method. (Example:"
            " https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(ctx: FunctionNode, *grads: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom"
            " autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: FunctionNode, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with"
            " forward mode AD."
        )

    @staticmethod
    def setup_context(ctx: FunctionNode, inputs: tuple[Any, ...], output: Any) -> Any:
        """What `forward` would save, where it has no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    generate_vmap_rule = False

    @staticmethod
    def vmap(info: object, in_dims: tuple[object, ...], *args: object) -> NoReturn:
        """The results for whole batches, and the dimensions of theirs that are the batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or"
            " set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Tensor | tuple[Tensor, ...]:
        """Run `forward` outside the graph and put one node on its outputs."""
        if "setup_context" in _defined(cls):
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs and LOCAL.levels and BY_RULE["level"]((*args, *kwargs.values())):
                raise NotImplementedError(
                    "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass"
                    f" kwarg-only Tensors to autograd.Function. Got: {bound.kwargs}"
                )
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            args, kwargs = _placed(cls, args, kwargs), {}
        if cls.__dict__.get("_node_class") is None:
            name = cls.__name__ + "Backward"
            members = {"_function": cls, "_place": _PLACE, "__module__": _PLACE.rstrip(".")}
            cls._node_class = type(name, (BackwardCFunction,), members)
        if (LOCAL.derivatives or LOCAL.levels) and not cls.__module__.startswith(_PACKAGE):
            refuse_without_context(cls)
        if LOCAL.forwards and not cls.__module__.startswith(_PACKAGE):
            if any(level.mapped for level in LOCAL.forwards):
                _rule_of(cls)
            if cls.jvp is Function.jvp and BY_RULE["moves"](args):
                Function.jvp(cls._node_class())
        if LOCAL.levels and not cls.__module__.startswith(_PACKAGE) and BY_RULE["level"](args):
            rule = _rule_of(cls)
            if rule is not None:
                return BY_RULE["call"](rule, args)
        for arg in args:
            if hasattr(type(arg), "_function_call"):
                result: Tensor | tuple[Tensor, ...] = arg._function_call(cls, args, kwargs)
                return result
        ctx = (_generated(cls) if LOCAL.derivatives else cls._node_class)()
        edges = [edge(a) if isinstance(a, Tensor) else None for a in args]
        ctx.needs_input_grad = tuple(e is not None for e in edges)
        recording = LOCAL.grad and any(e is not None for e in edges)
        if not LOCAL.dual or all(t is None for t in tangents_of(args)):
            result = run_forward(cls, ctx, args, kwargs)
            return _wrap_outputs(ctx, args, edges, result, recording)
        tangents = tangents_of(args)
        with plain():
            raw = run_forward(cls, ctx, args, kwargs)
            result = _wrap_outputs(ctx, args, edges, raw, recording)
            inputs = [Moving(*pair) for pair in zip(args, tangents, strict=True)]
            moved = run_jvp(cls.jvp, ctx, tangents, args)
        carry(ctx, result, moved, inputs, raw)
        return result


def _generated(cls: type[Function]) -> Any:
    """The class of a Function's nodes under torch.func, by torch's name."""
    node = cls._node_class
    if cls.__module__.startswith(_PACKAGE):
        return node
    if "_generated" not in vars(node):
        name = f"{cls.__name__}GeneratedBackward"
        node._generated = type(name, (node,), {"__module__": node.__module__})
    return node._generated


def _placed(
    cls: type[Function], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """All arguments by position; TypeError in torch's words where names leave a gap, defaults
    apart, or are none of `forward`'s positional parameters."""
    parameters = [*inspect.signature(cls.forward).parameters.values()][1:]
    last = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [p.name for p in parameters if p.kind <= last]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    rest = names[len(args) : len(args) + len(kwargs)]
    for at, name in enumerate(rest, len(args)):
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {at})")
    return (*args, *(kwargs[name] for name in rest))


def autograd_function_apply(function: type[Function], *args: Any, **kwargs: Any) -> Any:
    """What graphs call for a function of a program's own: the tuple of its results."""
    result = function.apply(*args, **kwargs)
    return result if isinstance(result, tuple) else (result,)


_PACKAGE = __name__.partition(".")[0] + "."
_PLACE = "torch.autograd.function."
# Set by transforms: `level`, that of the batches among arguments, `call`, which runs a user's rule
# for them, `moves`: whether an argument has a tangent of torch.func.jvp, `only_moves`: and no more.
BY_RULE: dict[str, Callable[..., Any]] = {"level": lambda args: 0, "moves": lambda args: False}
_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def refuse_without_context(cls: type[Function]) -> None:
    """RuntimeError for a Function under torch.func whose context only `forward` fills."""
    if "setup_context" not in _defined(cls):
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp,"
            f" jacrev, ...), it must override the setup_context staticmethod. {_MORE}"
        )


def _rule_of(cls: type[Function]) -> Callable[..., Any] | None:
    """A Function's own rule for vmap, None where it is to be derived; RuntimeError without one."""
    refuse_without_context(cls)
    has_rule = "vmap" in _defined(cls)
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an"
            " overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the"
            f" overridden vmap staticmethod to avoid ambiguity. {_MORE}"
        )
    if not cls.generate_vmap_rule and not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please"
            " override and implement the vmap staticmethod or set generate_vmap_rule=True."
            f" {_MORE}"
        )
    return cls.vmap if has_rule else None


def barrier(text: str, values: Sequence[object]) -> Any:
    """Views of the tensors among `values`, of which a backward is a RuntimeError of `text`."""
    return _Barrier.apply(text, *values)


class _Barrier(Function):
    """What a gradient that was made once leads to."""

    @staticmethod
    def forward(ctx: Any, text: str, *values: object) -> tuple[object, ...]:
        ctx.text = text
        return tuple(v.view_as(v) if isinstance(v, Tensor) else v for v in values)

    @staticmethod
    def backward(ctx: Any, *grads: object) -> object:
        raise RuntimeError(ctx.text)


class _BarredNode(BackwardCFunction):
    """The node of what has no gradient; it shows places that are no tensors too."""

    __module__ = ""
    label = "torch::autograd::Error"
    _function = _Barrier

    def next_edges(self) -> tuple[Any, ...]:
        return tuple(self.edges[1:])


_BarredNode.__name__ = "Error"
_Barrier._node_class = _BarredNode


class InplaceFunction(Function):
    """An older base of functions that may write to their inputs; Function serves as well."""

    def __init__(self, inplace: bool = False):
        self.inplace = inplace


def run_forward(
    cls: Any, ctx: FunctionNode, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor | tuple[Tensor, ...]:
    """What a Function's `forward` says, with nothing recorded."""
    grad_state = LOCAL.grad
    LOCAL.grad = False
    try:
        if "setup_context" in _defined(cls):
            result = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, result)
            return result
        return cls.forward(ctx, *args, **kwargs)
    finally:
        LOCAL.grad = grad_state


def _defined(cls: type[Function]) -> set[str]:
    return {name for c in cls.__mro__ if c is not Function for name in c.__dict__}


_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function"
    " cannot return more than one Tensor. This is not supported by the current autograd engine. You"
    " should either make sure the input is not a view (using .clone() for example) or make your"
    " Function only return one Tensor (potentially splitting it into two Functions: one doing the"
    " inplace that returns a single Tensor and a second one that does the other operations). You"
    " can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
_NO_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been"
    " mutated should be passed to ctx.mark_dirty(). "
)


def _wrap_outputs(
    ctx: FunctionNode,
    args: Sequence[Any],
    edges: Any,
    result: Tensor | tuple[Tensor, ...],
    recording: bool,
) -> Tensor | tuple[Tensor, ...]:
    outs = result if isinstance(result, tuple) else (result,)
    if not recording:
        inputs = {id(a) for a in args if a.__class__ is Tensor} - {id(t) for t in ctx.dirty_tensors}
        if inputs.isdisjoint(map(id, outs)):
            return result
        apart = _view_of_input if LOCAL.grad else Tensor.detach
        views = tuple(apart(o) if id(o) in inputs else o for o in outs)
        return views if isinstance(result, tuple) else views[0]
    ctx.edges = edges
    ctx.geoms = tuple(a._geom if isinstance(a, Tensor) else None for a in args)
    ctx.outs = tuple(o._geom if isinstance(o, Tensor) else None for o in outs)
    wrapped = []
    inputs = {id(a) for a in args if isinstance(a, Tensor)}
    if not all(isinstance(t, Tensor) for t in ctx.dirty_tensors):
        raise RuntimeError("mark_dirty can only accept variables, but argument ")
    dirty = {id(t) for t in ctx.dirty_tensors}
    if not dirty <= inputs:
        warn(_NO_INPUT)
    if not dirty <= {id(o) for o in outs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output."
            " The inputs that are modified inplace must all be outputs of the Function."
        )
    if len(outs) > 1 and any(t._base is not None for t in ctx.dirty_tensors):
        raise RuntimeError(_SEVERAL)
    for i, out in enumerate(outs):
        wrapped.append(_wrap_output(ctx, i, out, inputs, dirty))
    _save(ctx, outs, wrapped)
    if STATE.mark is not None:
        STATE.mark(wrapped)
    return tuple(wrapped) if isinstance(result, tuple) else wrapped[0]


def _wrap_output(
    ctx: FunctionNode, i: int, out: Tensor, inputs: set[int], dirty: set[int]
) -> Tensor:
    if not isinstance(out, Tensor):
        return out
    if id(out) in ctx.non_differentiable:
        return out.detach() if id(out) in inputs else out
    if out._geom.dtype.category < FLOAT:
        return out
    if id(out) in dirty:
        if out._fn.__class__ is AccumulateGrad:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        out._storage.value += 1
        rebase(out, ctx)
        return out
    if id(out) in inputs:
        out = _view_of_input(out)
    if out._base is not None:
        out._creation = "custom" if len(ctx.outs) == 1 else "multi"
    out._fn, out._nr = ctx, i
    return out


def _view_of_input(source: Tensor) -> Tensor:
    """A view that stands for an input which a function gives as it is."""
    out = wrap(source._geom, source._storage)
    out._base = source if source._base is None else source._base
    add_view(out._storage, out)
    return out


def _save(ctx: FunctionNode, outs: tuple[Tensor, ...], arrays: Any) -> None:
    places = {id(o): i for i, o in enumerate(outs) if isinstance(o, Tensor)}
    saved: list[Any] = []
    for tensor in ctx.to_save:
        if tensor is None:
            saved.append(None)
        elif not isinstance(tensor, Tensor):
            raise TypeError(
                "save_for_backward can only save variables, but argument"
                f" {len(saved)} is of type {type(tensor).__name__}"
            )
        else:
            number = places.get(id(tensor))
            saved.append(keep(tensor if number is None else arrays[number], number))
    ctx.saved = tuple(saved)
    ctx.to_save = ()
