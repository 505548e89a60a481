"""Owns vmap: a function of one element, for all of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._random.generator import get_rng_state, set_rng_state
from .._tensor.tensor import Tensor
from ..nn.utils.stateless import _functional_call
from ..ops.spec import aten
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from . import _layer_rules, _user_rules  # noqa: F401  (register)
from ._batched import BatchedTensor, Unbatched, batched, memory_of
from ._rules import derive

derive()


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func` over dimensions `in_dims` of its arguments; results are stacked at `out_dims`.

    Arguments by name go to `func` as they are, whole. Rows compute the whole batch at once, by the
    rules of `_rules`, or element by element without one. ValueError for dimensions that do not fit
    the arguments, RuntimeError for random draws where `randomness` is "error".
    """
    refuse_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        dims = _dims(func, in_dims, args, leaves, spec)
        size = _size(func, leaves, dims)

        def call(values: list[Any]) -> Any:
            return func(*tree_unflatten(values, spec), **kwargs)

        batch = _Batch(func, call, leaves, dims, size, randomness)
        if chunk_size is None or chunk_size >= size:
            return batch.run(out_dims)
        return _joined([part.run(out_dims) for part in batch.chunks(chunk_size)], out_dims)

    return inside


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """`vmap` that computes the batch in `chunks` parts, one after another."""

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        size = _size(func, leaves, _dims(func, in_dims, args, leaves, spec))
        part = vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))
        return part(*args, **kwargs)

    return inside


def refuse_randomness(randomness: str) -> None:
    """RuntimeError in torch's words for what says nothing of random draws."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got"
            f" {randomness}"
        )


class _Batch:
    """A call of a function for each element of a batch: all at once where that can be."""

    def __init__(
        self, func: Any, call: Callable[[list[Any]], Any], values: list[Any], dims: list[Any],
        size: int, randomness: str,
    ):  # fmt: skip
        self.func, self.call, self.values, self.dims = func, call, values, dims
        self.size, self.randomness = size, randomness

    def chunks(self, most: int) -> Iterator[_Batch]:
        """The batch in parts of at most `most`."""
        for start in range(0, self.size, most):
            size = min(most, self.size - start)
            parts = [
                v if d is None else aten.narrow(v, d, start, size)
                for v, d in zip(self.values, self.dims, strict=True)
            ]
            yield _Batch(self.func, self.call, parts, self.dims, size, self.randomness)

    def run(self, out_dims: Any) -> Any:
        """The results with the batch at `out_dims`."""
        before = LOCAL.levels, LOCAL.transforms, LOCAL.randomness, LOCAL.apart
        writes = LOCAL.batch_memory, LOCAL.batch_written
        try:
            LOCAL.randomness, LOCAL.batch_written = self.randomness, False
            LOCAL.apart |= self.randomness == "different"  # whose draws are made element by element
            LOCAL.batch_memory |= memory_of(self.values)
            try:
                return self._at_once(out_dims)
            except Unbatched as error:
                if LOCAL.batch_written:
                    raise RuntimeError(
                        f"vmap: a function was in the middle of writing to its input: {error}"
                    ) from error
            LOCAL.levels, LOCAL.transforms, _, LOCAL.apart = before
            return self._each(out_dims)
        finally:
            LOCAL.levels, LOCAL.transforms, LOCAL.randomness, LOCAL.apart = before
            LOCAL.batch_memory, LOCAL.batch_written = writes

    def _at_once(self, out_dims: Any) -> Any:
        number = len(LOCAL.levels) + 1
        LOCAL.levels = (*LOCAL.levels, (number, self.size))
        LOCAL.transforms = (*LOCAL.transforms, number)
        values = [
            v if d is None else batched(aten.movedim(v, d, 0) if d else v, number)
            for v, d in zip(self.values, self.dims, strict=True)
        ]
        for value, source, dim in zip(values, self.values, self.dims, strict=True):
            if dim:
                value._source = source, dim
        outs, spec = tree_flatten(self.call(values))
        LOCAL.levels = LOCAL.levels[:-1]
        dims = _out_dims(self.func, out_dims, spec)
        return tree_unflatten(
            [self._out(o, d, number) for o, d in zip(outs, dims, strict=True)], spec
        )

    def _out(self, out: Any, dim: int | None, number: int) -> Any:
        name = getattr(self.func, "__name__", repr(self.func))
        if not isinstance(out, Tensor):
            if dim is None:
                return out
            raise _no_tensor(name, out)
        is_ours = isinstance(out, BatchedTensor) and out._level == number
        if dim is None:
            if is_ours:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is"
                    " None"
                )
            return out
        whole = out._value if isinstance(out, BatchedTensor) and is_ours else aten.expand(
            out, (self.size, *out.shape)
        )  # fmt: skip
        if not -whole.dim() <= dim < whole.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-whole.dim()},"
                f" {whole.dim() - 1}], but got {dim})"
            )
        return aten.movedim(whole, 0, dim) if dim else whole

    def _each(self, out_dims: Any) -> Any:
        """Element after element."""
        if self.randomness == "different":
            LOCAL.randomness = ""
        state = get_rng_state() if self.randomness == "same" else None
        results = []
        for i in range(self.size):
            if state is not None:
                set_rng_state(state)
            results.append(self.call(_at(self.values, self.dims, i)))
        return _stacked(self.func, results, out_dims)


def _no_tensor(name: str, value: object) -> ValueError:
    return ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you"
        " mean to set out_dims= to None for output?"
    )


def _out_dims(func: Any, out_dims: Any, spec: Any) -> list[Any]:
    name = getattr(func, "__name__", repr(func))
    if not all(d is None or isinstance(d, int) for d in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python"
            " collection of ints representing where in the outputs the vmapped dimension should"
            " appear."
        )
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with"
            f" the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but"
            f" outputs has structure {spec}."
        )
    return list(dims)


def _joined(parts: list[Any], out_dims: Any) -> Any:
    """The results of chunks, one behind the other."""
    rows = [tree_flatten(part) for part in parts]
    dims = _broadcast_to_and_flatten(out_dims, rows[0][1]) or []
    columns = zip(*[leaves for leaves, _ in rows], strict=True)
    outs = [c[0] if d is None else aten.cat(list(c), d) for c, d in zip(columns, dims, strict=True)]
    return tree_unflatten(outs, rows[0][1])


def _dims(func: Any, in_dims: Any, args: Any, leaves: list[Any], spec: Any) -> list[Any]:
    """For each leaf the dimension to map over, not negative, or None."""
    name = getattr(func, "__name__", repr(func))
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a"
            f" (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not leaves:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are"
            " trying to vmap over a function with no inputs. The latter is unsupported."
        )
    flat = _broadcast_to_and_flatten(in_dims, spec)
    if flat is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the"
            f" structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs"
            f" has structure {spec}."
        )
    dims: list[Any] = []
    for leaf, dim in zip(leaves, flat, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input"
                " but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input"
                f" but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments,"
                " please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input,"
                f" but that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to"
                f" satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        dims.append(dim % leaf.dim())
    return dims


def _size(func: Any, leaves: list[Any], dims: list[Any]) -> int:
    sizes = [t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _at(leaves: list[Any], dims: list[Any], index: int) -> list[Any]:
    return [
        leaf if dim is None else aten.select(leaf, dim, index)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]


def _stacked(func: Any, results: list[Any], out_dims: Any) -> Any:
    if not results:
        raise RuntimeError("vmap: the batch is empty, so the results' shapes are not known")
    rows = [tree_flatten(result) for result in results]
    spec = rows[0][1]
    dims = _out_dims(func, out_dims, spec)
    instance = []
    for values, dim in zip(zip(*[leaves for leaves, _ in rows], strict=True), dims, strict=True):
        if dim is not None and not isinstance(values[0], Tensor):
            raise _no_tensor(getattr(func, "__name__", repr(func)), values[0])
        instance.append(values[0] if dim is None else aten.stack(values, dim))
    return tree_unflatten(instance, spec)


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Calls `module` with the tensors of a dict (or several) under their dotted names."""
    return _functional_call(
        module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of models of one kind, stacked at dimension 0."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )

    def stacked(kind: str) -> dict[str, Any]:
        tables = [dict(getattr(m, kind)()) for m in models]
        for name in tables[0]:
            if len({t[name].requires_grad for t in tables}) > 1:
                raise RuntimeError(
                    f"Expected {name} from each model to have the same .requires_grad"
                )
        return {
            k: aten.stack([t[k].detach() for t in tables]).requires_grad_(v.requires_grad)
            for k, v in tables[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")


__all__ = ["functional_call", "stack_module_state", "vmap"]
