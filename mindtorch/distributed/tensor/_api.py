"""Owns DTensor: a tensor whose parts, copies or summands lie in the processes of a mesh.

Gradients are recorded above it, as those of any tensor; what an operator needs of other processes
it fetches by collectives.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple, cast

import mindtorch

from ..._autograd.function import Function
from ..._autograd.grad_mode import LOCAL
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.geometry import Size
from ..._tensor.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from .. import _calls
from ..device_mesh import DeviceMesh, current_mesh
from ._redistribute import REPLICATE, Placements, local_shape_and_offset, redistributed
from ._rules import DRAWS, RULES, SIZES, ShardedCall, copies
from ._views import VIEWS, refuse_uneven
from .placement_types import Partial, Placement, Replicate, Shard

Layouts = Sequence[Placement] | None


class TensorMeta(NamedTuple):
    """What the whole tensor is."""

    shape: Size
    stride: tuple[int, ...]
    dtype: Dtype


class DTensorSpec(NamedTuple):
    """Where a tensor lies, and what it is as a whole."""

    mesh: DeviceMesh
    placements: Placements
    tensor_meta: TensorMeta

    @property
    def shape(self) -> Size:
        """Of the whole."""
        return self.tensor_meta.shape


class DTensor(Tensor):
    """A tensor over the processes of `device_mesh`; `placements` say how, by its dimensions."""

    _local_tensor: Tensor
    _spec: DTensorSpec

    @staticmethod
    def __new__(
        cls: type[DTensor], local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool = False
    ) -> DTensor:
        meta = spec.tensor_meta
        tensor: DTensor = Tensor._make_wrapper_subclass(
            cls, meta.shape, strides=meta.stride, dtype=meta.dtype, device=local_tensor.device,
            requires_grad=requires_grad,
        )  # fmt: skip
        tensor._local_tensor, tensor._spec = local_tensor, spec
        return tensor

    def __init__(self, *_: object, **__: object) -> None:
        """All is done in `__new__`."""

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes that it lies in."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """How it lies, by dimensions of the mesh."""
        return self._spec.placements

    def __repr__(self, **_: object) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh},"
            f" placements={self._spec.placements})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) not in memo:
            local = deepcopy(self._local_tensor, memo)
            memo[id(self)] = copy = DTensor(local, self._spec, requires_grad=self.requires_grad)
            if getattr(self, "_is_param", False):
                vars(copy)["_is_param"] = True
        done: DTensor = memo[id(self)]
        return done

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:  # fmt: skip
        return _computed(func, args, kwargs or {})

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Layouts = None, *,
        run_check: bool = False, shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None, grad_placements: Layouts = None,
    ) -> DTensor:  # fmt: skip
        """Each process's part as one tensor; evenly cut unless `shape` and `stride` are named."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                "the local_tensor argument only accepts torch.Tensor but got"
                f" {type(local_tensor)} value."
            )
        mesh = device_mesh or current_mesh()
        if mesh.device_type != local_tensor.device.type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        layout = _from_front(placements, mesh, local_tensor.ndim)
        _refuse_mixed(layout)
        grads = None if grad_placements is None else tuple(grad_placements)
        tensor: Any = _FromTorchTensor.apply(
            local_tensor, mesh, layout, run_check, shape, stride, grads
        )
        return cast("DTensor", tensor)

    def to_local(self, *, grad_placements: Layouts = None) -> Tensor:
        """This process's tensor."""
        local: Any = self._local_tensor
        if LOCAL.grad:
            grads = None if grad_placements is None else tuple(grad_placements)
            local = _ToTorchTensor.apply(self, grads)
        if getattr(self, "_is_param", False):
            local = local.view_as(local) if local is self._local_tensor else local
            local._is_param = True
        return cast("Tensor", local)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Layouts = None, *,
        async_op: bool = False, forward_dtype: Dtype | None = None,
        backward_dtype: Dtype | None = None,
    ) -> DTensor:  # fmt: skip
        """The same tensor by other placements."""
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        for now, then in zip(self.placements, placements, strict=False):
            if then.is_partial() and now != then:
                raise RuntimeError(
                    f"Can not redistribute from {now} to {then}, redistributing to Partial is for"
                    " internal use only!"
                )
        layout = _from_front(placements, mesh, self.ndim)
        types = forward_dtype, backward_dtype
        return cast("DTensor", Redistribute.apply(self, mesh, layout, types))

    def full_tensor(self, *, grad_placements: Layouts = None) -> Tensor:
        """The whole, in each process."""
        whole = self.redistribute(placements=[REPLICATE] * self.device_mesh.ndim)
        return cast("Tensor", _ToTorchTensor.apply(whole, grad_placements))


DTensor.__module__ = "mindtorch.distributed.tensor"


def _from_front(placements: Layouts, mesh: DeviceMesh, ndim: int) -> Placements:
    """The placements with dimensions counted from the front; copies without any."""
    if placements is None:
        return (REPLICATE,) * mesh.ndim
    layout = tuple(
        Shard(p.dim + ndim) if isinstance(p, Shard) and p.dim < 0 else p for p in placements
    )
    for p in layout:
        if isinstance(p, Shard) and p.dim < 0:
            raise AssertionError(f"Shard dim {p.dim} in placements {layout} must be normalized")
    return layout


def _refuse_mixed(placements: Sequence[Placement]) -> None:
    kinds = {p.reduce_op for p in placements if isinstance(p, Partial)}
    if len(kinds) > 1 and kinds != {"sum", "avg"}:
        raise ValueError(
            "Mixed Partial reduce types are not supported in the same placement list. Found reduce"
            f" ops: {kinds}. Please ensure all Partial placements use the same reduce operation."
        )


def _whole(local: Tensor, mesh: DeviceMesh, placements: Placements) -> TensorMeta:
    """What parts of the same size make."""
    shape, stride = list(local.shape), list(local.stride())
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            if placement.dim >= local.ndim:
                raise RuntimeError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {local.ndim} for"
                    f" placement number {i}"
                )
            step = stride[placement.dim]
            shape[placement.dim] *= mesh.size(i)
            stride = [
                s * mesh.size(i) if d != placement.dim and s >= step and step else s
                for d, s in enumerate(stride)
            ]
    return TensorMeta(Size(shape), tuple(stride), local.dtype)


def _default_gradients(placements: Placements) -> Placements:
    """Where gradients of summands are copies."""
    return tuple(REPLICATE if p.is_partial() else p for p in placements)


class _ToTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, input: DTensor, grad_placements: Placements | None) -> Tensor:
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        ctx.set_materialize_grads(False)
        return input._local_tensor.view_as(input._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[object, ...]:
        if grad is None:
            return None, None
        placements = ctx.grad_placements or _default_gradients(ctx.spec.placements)
        meta = ctx.spec.tensor_meta
        stride = _whole(grad, ctx.spec.mesh, ctx.spec.placements).stride
        spec = DTensorSpec(ctx.spec.mesh, tuple(placements), meta._replace(stride=stride))
        return DTensor(grad, spec), None


class _FromTorchTensor(Function):
    @staticmethod
    def forward(
        ctx: Any, input: Tensor, mesh: DeviceMesh, placements: Placements, run_check: bool,
        shape: Sequence[int] | None, stride: Sequence[int] | None,
        grad_placements: Placements | None,
    ) -> DTensor:  # fmt: skip
        ctx.placements = grad_placements or _default_gradients(placements)
        ctx.set_materialize_grads(False)
        if bool(shape) != bool(stride):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}.",
                "Please pass both shape and stride at the same time.",
            )
        if shape and stride:
            meta = TensorMeta(Size(shape), tuple(stride), input.dtype)
        else:
            meta = _whole(input, mesh, placements)
        if run_check:
            input = _from_first(input.contiguous(), mesh, placements)
        return DTensor(input.view_as(input), DTensorSpec(mesh, placements, meta))

    @staticmethod
    def backward(ctx: Any, grad: DTensor | None) -> tuple[object, ...]:
        if grad is None:
            return (None,) * 7
        local = _laid_out(grad, ctx.placements)
        return (local.view_as(local), *(None,) * 6)


class Redistribute(Function):
    """The same tensor by other placements; gradients lie as the input did."""

    @staticmethod
    def forward(
        ctx: Any, input: DTensor, mesh: DeviceMesh, placements: Placements, types: Any
    ) -> DTensor:
        ctx.spec, ctx.dtype = input._spec, types[1]
        ctx.set_materialize_grads(False)
        local = input._local_tensor.to(types[0] or input.dtype)
        moved = redistributed(local, input.shape, mesh, input.placements, placements)
        meta = input._spec.tensor_meta._replace(dtype=local.dtype)
        moved = moved.view_as(moved) if moved is input._local_tensor else moved
        return DTensor(moved, DTensorSpec(mesh, placements, meta))

    @staticmethod
    def backward(ctx: Any, grad: DTensor | None) -> tuple[object, ...]:
        if grad is None:
            return (None,) * 4
        then = _default_gradients(ctx.spec.placements)
        dtype = ctx.spec.tensor_meta.dtype
        local = grad._local_tensor.to(ctx.dtype or dtype)
        local = redistributed(local, grad.shape, grad.device_mesh, grad.placements, then).to(dtype)
        return DTensor(local, DTensorSpec(ctx.spec.mesh, then, ctx.spec.tensor_meta)), *(None,) * 3


def _laid_out(tensor: DTensor, placements: Placements) -> Tensor:
    """The local tensor by other placements."""
    return redistributed(
        tensor._local_tensor, tensor.shape, tensor.device_mesh, tensor.placements, placements
    )


def _from_first(local: Tensor, mesh: DeviceMesh, placements: Placements, source: int = 0) -> Tensor:
    """A tensor that is a copy along some dimensions, as the first process there has it."""
    for i, placement in enumerate(placements):
        if not placement.is_shard() and mesh.size(i) > 1:
            _calls.broadcast(local, group=mesh.get_group(i), group_src=source)
    return local


_MIXED = (
    "{} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before"
    " calling distributed operators!"
)
_ONE_ELEMENT = (
    "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a replicated"
    " DTensor for it. However, please consider changing it to a scalar tensor or explicitly create"
    " a DTensor under distributed environment."
)


def _as_distributed(func: object, value: Tensor, mesh: DeviceMesh) -> DTensor:
    """A plain tensor among the arguments: one number is a copy, others are refused."""
    if isinstance(value, DTensor):
        return value
    if value.numel() == 1 and value.ndim == 1:
        warnings.warn(_ONE_ELEMENT, stacklevel=2)
    if value.numel() != 1 and LOCAL.task is None and not _IMPLICIT:
        raise RuntimeError(_MIXED.format(func))
    meta = TensorMeta(value.shape, value.stride(), value.dtype)
    return DTensor(value, DTensorSpec(mesh, (REPLICATE,) * mesh.ndim, meta))


_IMPLICIT: list[bool] = []  # one for each `implicit_replication` that is open


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, plain tensors among an operator's arguments count as copies."""
    _IMPLICIT.append(True)
    try:
        yield
    finally:
        _IMPLICIT.pop()


def _computed(func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """An operator on the tensors of this process, once they lie as its rule wants them."""
    name = func.overloadpacket.__name__
    writes = name.endswith("_") and not name.endswith("__")
    leaves, tree = tree_flatten((args, kwargs))
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    mesh = next(leaves[i].device_mesh for i in at if isinstance(leaves[i], DTensor))
    tensors = [_as_distributed(func, leaves[i], mesh) for i in at]
    if name in ("_local_scalar_dense", "equal"):
        whole = [_laid_out(t, (REPLICATE,) * mesh.ndim) for t in tensors]
        return _run(func, leaves, tree, at, whole)
    declared = _arguments(func)
    named = {a.name: a.default_value for a in declared if a.has_default_value()}
    named |= dict(zip((a.name for a in declared), args, strict=False)) | kwargs
    base = name.removesuffix("_") if writes else name
    if base in VIEWS and tensors[0].is_contiguous():
        refuse_uneven(tensors[0], named[SIZES[base]])
    rule = RULES.get(base, copies)
    inputs: list[Sequence[Placement]] = []
    results: list[Any] = []
    for i in range(mesh.ndim):
        placements = [t.placements[i] for t in tensors]
        count = mesh.size(i)
        layout, result = rule(ShardedCall(base, tensors, placements, args, named, count, writes))
        inputs.append(layout)
        results.append(result)
    layouts = list(zip(*inputs, strict=True))
    if writes and layouts[0] != tensors[0].placements:
        raise RuntimeError(
            f"{func}: in-place operations that require placement changes are not supported. The"
            f" input has placement {tensors[0].placements}, but no valid strategy preserves this"
            " placement. Please use the out-of-place version of this operation instead."
        )
    locals_ = [_laid_out(t, layout) for t, layout in zip(tensors, layouts, strict=True)]
    shape = None if all(n == 1 for n in mesh.shape) else _meta_of(func, leaves, tree, at, tensors)
    if name in SIZES and shape is not None:
        size = local_shape_and_offset(shape.shape, mesh, tuple(results))[0]
        args = tuple(
            list(size) if a.name == SIZES[name] else v for a, v in zip(declared, args, strict=False)
        )
        leaves, tree = tree_flatten((args, kwargs))
    if base in DRAWS:
        warnings.warn(
            "DTensor random operators may not have complete support on"
            f" {mesh.device_type} device mesh",
            stacklevel=2,
        )
    out = _run(func, leaves, tree, at, locals_)
    return tensors[0] if writes else _wrapped(out, shape, mesh, tuple(results))


def _arguments(func: Any) -> Sequence[Any]:
    """What an operator takes; nothing where it is no row, as what fills with draws."""
    try:
        declared: Sequence[Any] = func._schema.arguments
    except AttributeError:
        return ()
    return declared


def _run(func: Any, leaves: list[Any], tree: Any, at: Sequence[int], tensors: Any) -> Any:
    leaves = list(leaves)
    for i, tensor in zip(at, tensors, strict=True):
        leaves[i] = tensor
    args, kwargs = tree_unflatten(leaves, tree)
    return func(*args, **kwargs)


def _meta_of(func: Any, leaves: Any, tree: Any, at: Sequence[int], tensors: Any) -> Any:
    """What the whole result is, without memory."""
    empty = [
        mindtorch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in tensors
    ]
    leaves = ["meta" if isinstance(v, mindtorch.device) else v for v in leaves]
    return _run(func, leaves, tree, at, empty)


def _wrapped(out: Any, meta: Any, mesh: DeviceMesh, placements: Placements) -> Any:
    if isinstance(out, tuple | list):
        metas = [None] * len(out) if meta is None else meta
        each = [
            tuple(p[i] if isinstance(p, tuple) else p for p in placements) for i in range(len(out))
        ]
        return type(out)(map(_wrapped, out, metas, [mesh] * len(out), each))
    if not isinstance(out, Tensor):
        return out
    whole = out if meta is None else meta
    dims = tuple(
        REPLICATE if isinstance(p, Shard) and p.dim >= whole.ndim else p for p in placements
    )
    spec = DTensorSpec(mesh, dims, TensorMeta(whole.shape, whole.stride(), out.dtype))
    return DTensor(out, spec)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Layouts = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """A leaf that each process has, as the process `src_data_rank` of each dimension has it, over
    the mesh; None takes each process's own."""
    mesh = device_mesh or current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf"
            " tensor!"
        )
    if mesh.device_type != tensor.device.type and not tensor.is_meta:
        tensor = tensor.to(mesh.device_type)
    placements = [REPLICATE] * mesh.ndim if placements is None else placements
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements"
            f" length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    _refuse_mixed(placements)
    if isinstance(tensor, DTensor):
        return _distributed_before(tensor, mesh, placements)
    layout = _from_front(placements, mesh, tensor.ndim)
    for i, placement in enumerate(layout):
        if isinstance(placement, Shard) and placement.dim >= tensor.ndim:
            if placement.dim > tensor.ndim:
                raise AssertionError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {tensor.ndim}"
                )
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-tensor.ndim},"
                f" {tensor.ndim - 1}], but got {placement.dim})"
            )
        if not isinstance(placement, Shard | Replicate | Partial):
            raise RuntimeError(
                f"Trying to distribute tensor with unsupported placements {placement} on device"
                f" mesh dimension {i}!"
            )
    local = tensor.detach()
    whole: Placements = (REPLICATE,) * mesh.ndim
    sent = src_data_rank is not None and not local.is_meta and mesh.size() > 1
    if sent or any(not p.is_replicate() for p in layout):
        local = local.clone()
    if sent:
        local = _from_first(local, mesh, whole, src_data_rank or 0)
    local = redistributed(local, tensor.shape, mesh, whole, layout)
    spec = DTensorSpec(mesh, layout, TensorMeta(tensor.shape, tensor.stride(), tensor.dtype))
    return DTensor(
        local.requires_grad_(tensor.requires_grad), spec, requires_grad=tensor.requires_grad
    )


def _distributed_before(tensor: DTensor, mesh: DeviceMesh, placements: Any) -> DTensor:
    if tensor.device_mesh != mesh:
        raise ValueError(
            f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different"
            f" device mesh {mesh}."
        )
    if tensor.placements != tuple(placements):
        raise ValueError(
            f"Cannot distribute a DTensor with placements {tensor.placements} to a different"
            f" placements {placements}. do you want to call `redistribute` instead?"
        )
    return tensor
