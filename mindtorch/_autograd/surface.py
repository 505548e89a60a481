"""Owns what users see of autograd: Tensor's attributes and hooks, backward and grad."""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, cast

from .._backends.registry import registry
from .._compat.class_names import class_name
from .._compat.warn_once import warn
from .._tensor.dtype import FLOAT, bool as BOOL
from .._tensor.storage import Storage, add_view
from .._tensor.subclass import DOOR, off
from .._tensor.tensor import Tensor, forget_array, wrap
from ..ops.spec import aten
from . import engine
from .codegen import edge
from .grad_dtype import arrive, grad_dtype, refuse_dtype
from .grad_mode import LOCAL, MODES
from .handles import RemovableHandle, add_hook
from .node import (
    INFERENCE,
    STALE,
    AccumulateGrad,
    GradientEdge,
    Node,
    detached,
    hooked,
    public_node,
)  # fmt: skip
from .views import fresh_edge


def _resolved(tensor: Tensor) -> Node | None:
    fn = tensor._fn
    if fn is STALE:
        fresh_edge(tensor)
        fn = tensor._fn
    return None if fn is INFERENCE else fn


def _requires_grad(self: Tensor) -> bool:
    return self._fn is not None and _resolved(self) is not None


def _set_requires_grad(
    self: Tensor, value: bool, which: str = "floating point and complex"
) -> None:
    if value.__class__ is not bool:
        raise RuntimeError("requires_grad must be a bool")
    fn = _resolved(self)
    if fn is not None and fn.__class__ is not AccumulateGrad:
        if value:
            return
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a"
            " computed variable in a subgraph that doesn't require differentiation use"
            " var_no_grad = var.detach()."
        )
    if not value:
        if fn is not None:
            _follow(self, False)
        self._fn = None
        return
    if fn is not None:
        return
    if self._geom.dtype.category < FLOAT:
        raise RuntimeError(f"only Tensors of {which} dtype can require gradients")
    if self._fn is INFERENCE and not LOCAL.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    self._fn = leaf = AccumulateGrad(self)
    arrive(leaf, self)
    self._nr = 0
    _follow(self, True)


def _follow(base: Tensor, requires: bool) -> None:
    """Views that were made of a tensor without a gradient require one as it does: as leaves."""
    for view_ref in base._storage.views or ():
        view = view_ref()
        if view is not None and view._base is base and view._geom.dtype.category >= FLOAT:
            if requires and view._fn is None:
                view._fn = AccumulateGrad(view)
            elif not requires and view._fn.__class__ is AccumulateGrad:
                view._fn = None


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Make this leaf record gradients (or not); RuntimeError for one that can't."""
    if requires_grad.__class__ is not bool:
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not"
            f" {type(requires_grad).__name__}"
        )
    _refuse_in_transforms("requires_grad_", OF_FUNCTIONAL)
    _set_requires_grad(self, requires_grad, "floating point")
    return self


def _refuse_in_transforms(name: str, more: str = "") -> None:
    """RuntimeError in torch's words where a program's function under torch.func asks for this."""
    if not (LOCAL.levels or LOCAL.derivatives):
        return
    if str(sys._getframe(2).f_globals.get("__name__", "")).startswith(_PACKAGE):
        return
    raise in_transforms(name, more)


OF_FUNCTIONAL = " (or perhaps using torch.autograd.functional.* APIs)"


def in_transforms(name: str, more: str = "") -> RuntimeError:
    """torch's words for a method that a function under torch.func may not call."""
    return RuntimeError(
        f"You are attempting to call Tensor.{name}(){more} inside of a function being transformed"
        " by a functorch transform. This is unsupported, please attempt to use the functorch"
        " transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call"
        f" {name}() outside of a function being transformed instead."
    )


_PACKAGE = __name__.partition(".")[0] + "."


def _grad_fn(self: Tensor) -> Node | None:
    fn = _resolved(self)
    return None if fn is None or fn.__class__ is AccumulateGrad else public_node(fn)


def _is_leaf(self: Tensor) -> bool:
    fn = _resolved(self)
    return fn is None or fn.__class__ is AccumulateGrad


def _grad(self: Tensor) -> Tensor | None:
    grad = self._grad
    if grad is None and self._fn is not None and not self._retains and not _is_leaf(self):
        warn(_NOT_A_LEAF, UserWarning)
    return grad


_NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad"
    " attribute won't be populated during autograd.backward(). If you indeed want the .grad field"
    " to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you"
    " access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See"
    " github.com/pytorch/pytorch/pull/30531 for more information. "
)


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type"
                f" {class_name(value)}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        refuse_dtype(self, value)
        if value.device.type != self.device.type:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a"
                f" tensor with device type '{self.device.type}'. Please ensure that the gradient"
                " and the tensor are on the same device"
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size"
                f" '{list(self.shape)}'. Please ensure that the gradient and the tensor are the"
                " same size"
            )
    self._grad = value


def detach(self: Tensor) -> Tensor:
    """The same storage and version counter, outside the graph."""
    if MODES.active and LOCAL.profilers:
        alias = DOOR["profiled_function"]("detach", detached, (self,), {})
    else:
        alias = detached(self)
    if self._fn is INFERENCE:
        alias._fn = INFERENCE
    return alias


def detach_(self: Tensor) -> Tensor:
    """Leave the graph: this tensor becomes a leaf that needs no gradient."""
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using"
            " DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as"
            " True, gradients are views of DDP buckets, and hence detach_() cannot be called on"
            " these gradients. To fix this error, please refer to the Optimizer.zero_grad()"
            " function in torch/optim/optimizer.py as the solution."
        )
    if self._fn is not INFERENCE:
        self._fn, self._nr = None, 0
    return self


def _data(self: Tensor) -> Tensor:
    alias = wrap(self._geom, Storage(self._storage.memory))
    self._storage.host_copy = None  # the alias has a version of its own
    if self._geom.device.type == "cpu":
        alias._storage._bytes = self._storage.bytes
    if self._fn is INFERENCE:
        alias._fn = INFERENCE
    return alias


def _version(self: Tensor) -> int:
    if self._fn is INFERENCE:
        raise RuntimeError("Inference tensors do not track version counter.")
    return self._storage.value


def _backward_hooks(self: Tensor) -> Any:
    """The hooks of the tensor's gradient by their numbers; None without one."""
    hooks = (getattr(self._fn, "tensor_hooks", None) or {}).get(self._nr)
    return None if hooks is None else OrderedDict(hooks)


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {class_name(value)}")
    if value.is_meta != self.is_meta or value.is_sparse != self.is_sparse:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have"
            " incompatible tensor type."
        )
    if self.requires_grad and value._geom.dtype.category < FLOAT:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    version = self._storage.value
    self._storage = value._storage if self._storage is value._storage else _data(value)._storage
    self._storage.value = version
    self._geom = value._geom
    fn = self._fn
    if fn.__class__ is AccumulateGrad:  # the engine casts gradients to what the leaf is now
        arrive(fn, self)
    forget_array(self)


def _keep_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def _keep_requires_grad(self: Tensor) -> None:
    raise RuntimeError("requires_grad must be a bool")


def retain_grad(self: Tensor) -> None:
    """Keep this non-leaf's gradient in `.grad` too."""
    _refuse_in_transforms("retain_grad")
    if not _requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if _is_leaf(self) or self._retains:
        return
    self._retains = True
    reference = weakref.ref(self)

    def keep(grad: Tensor) -> None:
        tensor = reference()
        if tensor is not None and grad is not None:
            before = tensor._grad
            tensor._grad = _contiguous_copy(grad) if before is None else aten.add(before, grad)

    _hook_table(self)[-1] = keep


def _contiguous_copy(grad: Tensor) -> Tensor:
    copied: Tensor = aten.clone(grad)
    return copied if grad.is_sparse else copied.contiguous()


def _hook_table(self: Tensor) -> dict[int, Callable[[Tensor], Any]]:
    node = _resolved(self)
    assert node is not None, "a tensor that requires a gradient has a node"
    if node.tensor_hooks is None:
        node.tensor_hooks = {}
    return node.tensor_hooks.setdefault(self._nr, {})


def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(grad)` when this tensor's whole gradient is known; it may return another."""
    if not _requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is None:
        hooked.leaves = True
    table = _hook_table(self)
    hooks = table.pop(-1, None)
    handle = add_hook(table, hook)
    if hooks is not None:
        table[-1] = hooks
    return handle


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(tensor)` after its `.grad` was added to; RuntimeError for a non-leaf."""
    fn = _resolved(self)
    if fn.__class__ is not AccumulateGrad:
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
            if fn is not None
            else "cannot register a hook on a tensor that doesn't require gradient"
        )
    hooked.leaves = True
    if fn.post_hooks is None:
        fn.post_hooks = {}
    return add_hook(fn.post_hooks, hook)


def _keeps(retain_graph: bool | None, create_graph: bool) -> bool:
    """Whether the graph is kept; TypeError for what is no flag."""
    return index(create_graph if retain_graph is None else retain_graph) != 0


def _listed(value: Any) -> list[Any]:
    single = value is None or isinstance(value, Tensor | GradientEdge)
    return [value] if single else list(value)


def backward(
    tensors: Tensor | Sequence[Any],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` into the leaves' `.grad` (torch.autograd.backward)."""
    _refuse_transforms()
    outs = _listed(tensors)
    answer = DOOR["ask_for_gradients"](
        backward, outs, tuple(outs), grad_tensors=grad_tensors, retain_graph=retain_graph,
        create_graph=create_graph, inputs=inputs,
    )  # fmt: skip
    if answer is not NotImplemented:
        return
    if grad_variables is not None:
        warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to"
                " `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    into = None if inputs is None else _listed(inputs)
    if into == []:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = [None] * len(outs) if grad_tensors is None else _listed(grad_tensors)
    keep = _keeps(retain_graph, create_graph)
    roots = engine.root_edges(outs, grads)
    engine.run(roots, keep, create_graph, None if into is None else _accumulating(into))


def _refuse_transforms() -> None:
    if LOCAL.derivatives or LOCAL.levels:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use"
            " functorch.grad or functorch.vjp instead or call backward() outside of functorch"
            " transforms."
        )


def _accumulating(inputs: Sequence[Any]) -> list[tuple[Node, int]]:
    """Where the gradients of inputs arrive; those that are no leaves keep theirs from now on."""
    _refuse_no_inputs(inputs)
    for value in inputs:
        if isinstance(value, Tensor):
            retain_grad(value)
    return [_input_edge(value) for value in inputs]


def _refuse_no_inputs(inputs: Sequence[Any]) -> None:
    for value in inputs:
        if not hasattr(value, "_fn") and not isinstance(value, tuple):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}"
            )


def _input_edge(tensor: Tensor | GradientEdge) -> tuple[Node, int]:
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if tensor.__class__ is not Tensor:  # a sparse tensor's gradient goes to its values
        tensor = getattr(tensor, "_differentiable", tensor)
    input_edge = edge(tensor)
    if input_edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return input_edge


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of `outputs` with respect to `inputs`, added to nothing (torch.autograd.grad)."""
    outs, ins = _listed(outputs), _listed(inputs)
    answer = DOOR["ask_for_gradients"](
        grad, outs + ins, tuple(outs), tuple(ins), grad_outputs=grad_outputs,
        retain_graph=retain_graph, create_graph=create_graph, only_inputs=only_inputs,
        allow_unused=materialize_grads if allow_unused is None else allow_unused,
        is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
    )  # fmt: skip
    if answer is not NotImplemented:
        return cast("tuple[Any, ...]", answer)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got:"
            " allow_unused=False."
        )
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To"
            " accumulate gradient for other parts of the graph, please use"
            " torch.autograd.backward.",
            FutureWarning,
        )
    if is_grads_batched:
        return _batched_grad(
            outs, ins, grad_outputs, retain_graph, create_graph, allow_unused,
            materialize_grads,
        )  # fmt: skip
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    _refuse_no_inputs(ins)
    grads = [None] * len(outs) if grad_outputs is None else _listed(grad_outputs)
    keep = _keeps(retain_graph, create_graph)
    roots = engine.root_edges(outs, grads)
    leaf_grads = engine.run(roots, keep, create_graph, [_input_edge(t) for t in ins], False)
    for i, value in enumerate(leaf_grads):
        if value is not None:
            if ins[i].__class__ is not Tensor and hasattr(ins[i], "_as_gradient"):
                leaf_grads[i] = ins[i]._as_gradient(value)
            continue
        if materialize_grads:
            if isinstance(ins[i], GradientEdge):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            zeros = aten.zeros_like(ins[i])
            leaf_grads[i] = zeros.requires_grad_() if create_graph else zeros
        elif not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the"
                " graph. Set allow_unused=True if this is the desired behavior."
            )
    return tuple(leaf_grads)


def _batched_grad(
    outputs: list[Any], inputs: list[Any], grad_outputs: Any, retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None, materialize_grads: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """`grad` for each element along the first dim of `grad_outputs`, stacked."""
    parts = _listed(grad_outputs)
    if any(g is None for g in parts):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    sizes = {g.shape[0] for g in parts}
    if len(sizes) != 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {sorted(sizes)} for the mapped dimension"
        )
    for i, (out, weight) in enumerate(zip(outputs, parts, strict=True)):
        if weight.shape[1:] != out.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
                " as the batch dimension. The sizes of the remaining dimensions are expected to"
                " match the shape of corresponding output, but a mismatch was detected:"
                f" grad_output[{i}] has a shape of {weight.shape[2:]} and output[{i}] has a shape"
                f" of {out.shape}. If you only want some tensors in `grad_output` to be considered"
                " batched, consider using vmap."
            )
    count, keep = sizes.pop(), _keeps(retain_graph, create_graph)
    rows = [
        grad(outputs, inputs, [g[i] for g in parts],
             keep or i + 1 < count, create_graph, True, allow_unused, False, materialize_grads)
        for i in range(count)
    ]  # fmt: skip
    columns = zip(*rows, strict=True)
    return tuple(None if column[0] is None else aten.stack(column) for column in columns)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add this tensor's gradients into the leaves' `.grad`."""
    _refuse_transforms()
    if inputs is not None or not (gradient is None or isinstance(gradient, Tensor)):
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
        return
    keep = _keeps(retain_graph, create_graph)
    engine.run(engine.root_edges((self,), (gradient,)), keep, create_graph)


def is_inference(self: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return self._fn is INFERENCE


def _check_inplace(self: Tensor) -> None:
    from .layer import refuse_leaf

    if LOCAL.grad and edge(self) is not None:
        refuse_leaf(self)


def refuse_class(cls: object) -> None:
    """TypeError in torch's words for what is no subclass of Tensor."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )


def _make_subclass(
    cls: type[Tensor], data: Tensor, require_grad: bool = False, **kwargs: Any
) -> Tensor:
    """A new leaf of class `cls` over the storage of `data` (torch.Tensor._make_subclass)."""
    refuse_class(cls)
    if hasattr(data, "_of_class"):
        sparse: Tensor = data._of_class(cls, kwargs.get("requires_grad", require_grad))
        return sparse
    if hasattr(data, "_as_gradient"):
        raise NotImplementedError(
            f"{cls.__name__}: a nested tensor has no memory to share; to_padded_tensor() makes an"
            " ordinary tensor"
        )
    requires = kwargs.get("requires_grad", require_grad)
    if requires.__class__ is not bool:
        raise TypeError(
            "_make_subclass(): argument 'require_grad' (position 3) must be bool, not"
            f" {class_name(requires)}"
        )
    instance = object.__new__(cls)
    instance._geom = data._geom
    instance._storage = data._storage
    instance._fn = None
    instance._nr = 0
    instance._base = None
    return requires_grad_(instance) if requires else instance


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A view of the tensor, as an instance of `cls`."""
    with off():
        alias = self if hasattr(self, "_as_gradient") else aten.alias(self)
        instance = _make_subclass(cls, alias)
    for name in ("_fn", "_nr", "_base", "_creation"):
        setattr(instance, name, getattr(alias, name))
    if instance._base is not None:
        add_view(instance._storage, instance)
    return instance


def install() -> None:
    """Attach everything to Tensor."""
    members: dict[str, Any] = {
        "requires_grad": property(_requires_grad, _set_requires_grad, _keep_requires_grad),
        "grad_fn": property(_grad_fn),
        "is_leaf": property(_is_leaf),
        "grad_dtype": grad_dtype,
        "grad": property(_grad, _set_grad, lambda self: _set_grad(self, None)),
        "data": property(_data, _set_data, _keep_data),
        "_version": property(_version),
        "name": property(lambda self: None),
        "_backward_hooks": property(_backward_hooks),
        "output_nr": property(lambda self: self._nr),
        "retains_grad": property(lambda self: bool(self._retains)),
        "requires_grad_": requires_grad_,
        "detach": detach,
        "detach_": detach_,
        "retain_grad": retain_grad,
        "register_hook": register_hook,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "backward": _backward,
        "is_inference": is_inference,
        "_check_inplace": _check_inplace,
        "_make_subclass": staticmethod(_make_subclass),
        "as_subclass": as_subclass,
    }
    _backward.__name__ = "backward"
    _backward.__qualname__ = "Tensor.backward"
    for name, member in members.items():
        setattr(Tensor, name, member)
    Tensor.volatile = False  # type: ignore[attr-defined]


def straight(slope: Tensor, self: Tensor) -> Tensor:
    """The gradient of a function made of straight lines, whose own derivative is zero, not absent.

    Where that derivative may be asked for, `self` becomes part of the history, as in torch.
    """
    if not (LOCAL.grad and _requires_grad(self)) or slope.shape != self.shape:
        return slope
    everywhere = aten.ones_like(self, dtype=BOOL)
    return slope + aten.to(aten.masked_fill(self, everywhere, 0), slope.dtype)


install()


def recorded(*tensors: Tensor) -> bool:
    """Whether a call with these tensors would be put on the graph."""
    return LOCAL.grad and any(t.requires_grad for t in tensors)


aten.publish("straight", straight)
aten.publish("_recorded", recorded)
__all__ = ["backward", "grad", "registry"]
