"""Owns torch.autograd.functional: Jacobians, Hessians and their products, by reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from .._tensor.tensor import Tensor
from ..ops.spec import aten
from .grad_mode import LOCAL, enable_grad
from .surface import OF_FUNCTIONAL, grad, in_transforms

F = TypeVar("F", bound=Callable[..., Any])


def _tuple(value: Tensor | tuple[Tensor, ...]) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _like(template: Tensor | tuple[Tensor, ...], values: Any) -> Any:
    return tuple(values) if isinstance(template, tuple | list) else values[0]


def _checked(what: str, value: object, name: str) -> tuple[Any, ...]:
    """A tensor, or several, as a tuple; TypeError in torch's words for anything else."""
    several = isinstance(value, tuple)
    parts = value if isinstance(value, tuple) else (value,)
    for i, part in enumerate(parts):
        if isinstance(part, Tensor):
            continue
        message = f"the given {what} has type {type(part)}."
        if several:
            message = f"the value at index {i} has type {type(part)}."
        raise TypeError(
            f"The {what} given to {name} must be either a Tensor or a tuple of Tensors"
            f" but {message}"
        )
    return parts


def _vector(v: Any, tensors: tuple[Any, ...], several: bool, name: str) -> tuple[Any, ...]:
    """`v` as a tuple; RuntimeError in torch's words where it is of other sizes than `tensors`."""
    vectors = _checked("v", v, name)
    if len(vectors) != len(tensors):
        if not several:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(tensors)} but got {len(vectors)}."
        )
    for i, (vector, like) in enumerate(zip(vectors, tensors, strict=True)):
        if vector.size() != like.size():
            place = f"Entry {i} in " if several else ""
            raise RuntimeError(
                f"{place}v has invalid size: should be {like.size()} but got {vector.size()}."
            )
    return vectors


def _refuse_constant(outs: tuple[Any, ...], strict: bool) -> None:
    """RuntimeError in torch's words where a strict call's results depend on no input."""
    for i, out in enumerate(outs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs"
                " must be computed in a differentiable manner from the input when running in strict"
                " mode."
            )


_CONSTANT = {
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the"
    " user-provided function. This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function"
    " with respect to input {i} is independent of the input. This is not allowed in strict mode."
    " You should ensure that your function is twice differentiable and that the jacobian depends on"
    " the inputs (this would be violated by a linear function for example).",
}
_UNUSED = {
    "back": "The output of the user-provided function is independent of input {i}. This is not"
    " allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the"
    " grad_outputs when using the double backward trick to compute forward mode gradients. This is"
    " not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is"
    " not allowed in strict mode.",
}


def _refuse_constant_slopes(slopes: Any, what: str, strict: bool) -> None:
    """RuntimeError in torch's words where a strict call's first derivatives are constant."""
    for i, slope in enumerate(slopes):
        if strict and (slope is None or not slope.requires_grad):
            text = _UNUSED["back"] if slope is None else _CONSTANT[what]
            raise RuntimeError(text.format(i=i))


def _call(
    func: Callable[..., Any], inputs: Any, create_graph: bool, name: str, strict: bool = False
) -> tuple[Any, Any, Any]:
    """The inputs as fresh parts of a graph, the raw result, and its tensors."""
    if LOCAL.levels or LOCAL.derivatives:
        raise in_transforms("requires_grad_", OF_FUNCTIONAL)
    arguments = _checked("inputs", inputs, name)
    if create_graph:
        leaves = tuple(aten.alias(t) if t.requires_grad else t.detach() for t in arguments)
    else:
        leaves = tuple(t.detach() for t in arguments)
    leaves = tuple(t if t.requires_grad else t.requires_grad_() for t in leaves)
    with enable_grad():
        raw = func(*leaves)
    outs = _checked("outputs of the user-provided function", raw, name)
    _refuse_constant(outs, strict)
    return leaves, raw, outs


def _filled(
    grads: Any, like: Sequence[Tensor], strict: bool = False, create_graph: bool = False,
    stage: str = "back",
) -> list[Any]:  # fmt: skip
    """Zeros where there is no gradient; RuntimeError in torch's words where `strict` asks for one.

    A strict call with `create_graph` asks that it depends on the inputs, too.
    """
    for i, value in enumerate(grads):
        if strict and value is None:
            raise RuntimeError(_UNUSED[stage].format(i=i))
        if strict and create_graph and not value.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not"
                " allowed in strict mode when create_graph=True."
            )
    return [aten.zeros_like(t) if g is None else g for t, g in zip(like, grads, strict=True)]


def _gradients(outs: Any, leaves: Any, weights: Any, create_graph: bool) -> Sequence[Any]:
    """Gradients of those outputs that have one; None for inputs that none depends on."""
    pairs = [
        (o, w) for o, w in zip(outs, weights, strict=True) if o is not None and o.requires_grad
    ]
    if not pairs:
        return [None] * len(leaves)
    some, outputs = zip(*pairs, strict=True)
    return grad(some, leaves, outputs, retain_graph=True, create_graph=create_graph,
                allow_unused=True)  # fmt: skip


def _recording(function: F) -> F:
    """The function, that records gradients where its caller records none."""
    return cast("F", enable_grad()(function))


@_recording
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`func(*inputs)` and its vector-Jacobian product with `v` (1 for a scalar result)."""
    leaves, raw, outs = _call(func, inputs, create_graph, "vjp", strict)
    if v is None and any(o.numel() != 1 for o in outs):
        raise RuntimeError(
            "The vector v can only be None if the user-provided function returns a single Tensor"
            " with a single element."
        )
    several = isinstance(raw, tuple)
    weights = [aten.ones_like(o) for o in outs] if v is None else _vector(v, outs, several, "vjp")
    grads = _gradients(outs, leaves, weights, create_graph)
    vjps = _filled(grads, leaves, strict, create_graph)
    return _detached(raw, create_graph), _like(inputs, vjps)


@_recording
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`func(*inputs)` and its Jacobian-vector product with `v` (1 for a single number).

    The vector-Jacobian product is linear in its vector; its derivative there is the Jacobian.
    """
    leaves, raw, outs = _call(func, inputs, create_graph, "jvp", strict)
    if v is None and any(t.numel() != 1 for t in leaves):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single"
            " Tensor with a single element."
        )
    several = isinstance(inputs, tuple)
    vectors = (
        [aten.ones_like(t) for t in leaves] if v is None else _vector(v, leaves, several, "jvp")
    )
    weights = tuple(aten.zeros_like(o).requires_grad_() for o in outs)
    pulled = _gradients(outs, leaves, weights, True)
    _refuse_constant_slopes(pulled, "grad_inputs", strict)
    moved = _gradients(pulled, weights, vectors, create_graph)
    product = _filled(moved, outs, strict, create_graph, "back_trick")
    return _detached(raw, create_graph), _like(raw, product)


def _detached(value: Tensor, create_graph: bool) -> Tensor:
    if create_graph:
        return value
    return _like(value, [t.detach() for t in _tuple(value)])


def _rows(
    number: int, out: Tensor, leaves: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> list[Any]:
    """For each leaf, the gradients of every element of output `number`, stacked."""
    flat = aten.reshape(out, (-1,))
    jacobian_rows = []
    for i in range(flat.numel()):
        element = aten.select(flat, 0, i)
        grads = _gradients((element,), leaves, (aten.ones_like(element),), create_graph)
        if strict and None in grads:
            raise RuntimeError(
                f"Output {number} of the user-provided function is independent of input"
                f" {list(grads).index(None)}. This is not allowed in strict mode."
            )
        jacobian_rows.append(_filled(grads, leaves, strict, create_graph))
    per_input = []
    for k, leaf in enumerate(leaves):
        shape = (*out.shape, *leaf.shape)
        rows = [row[k] for row in jacobian_rows]
        per_input.append(aten.reshape(aten.stack(rows), shape) if rows else leaf.new_zeros(shape))
    return per_input


@_recording
def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input, a tensor of both shapes joined."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your'
            ' function has more outputs than inputs, "forward-mode" tends to be more performant.'
            ' Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"`'
            " are not supported together (yet). Please either set `create_graph=False` or"
            ' `strategy="reverse-mode"`.'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    leaves, raw, outs = _call(func, inputs, create_graph, "jacobian", strict)
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not"
            " supported together. Please either set `strict=False` or `vectorize=False`."
        )
    table = [_like(inputs, _rows(i, out, leaves, create_graph, strict))
             for i, out in enumerate(outs)]  # fmt: skip
    return _like(raw, table)


@_recording
def hessian(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with a scalar result."""
    _checked("inputs", inputs, "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def first(*values: Any) -> tuple[Tensor, ...]:
        out = func(*values)
        outs = _checked("outputs of the user-provided function", out, "hessian")
        _refuse_constant(outs, strict)
        _refuse_several("hessian", out)
        grads = _gradients(outs, values, [aten.ones_like(out)], True)
        slopes = tuple(_filled(grads, values))
        _refuse_constant_slopes(slopes, "jacobian", strict)
        return slopes

    table = jacobian(first, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return table if isinstance(inputs, tuple | list) else table[0]


@_recording
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`func(*inputs)` and the product of its Hessian with `v` (1 for a single number)."""
    return _second("hvp", func, inputs, v, create_graph, strict)


@_recording
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`func(*inputs)` and the product of `v` with its Hessian, which is symmetric."""
    return _second("vhp", func, inputs, v, create_graph, strict)


def _refuse_several(name: str, raw: Any) -> None:
    """RuntimeError in torch's words for a result that is not one number."""
    if isinstance(raw, tuple):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if raw.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )


def _second(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    tensors = _checked("inputs", inputs, name)
    if v is None and any(t.numel() != 1 for t in tensors):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single"
            " Tensor with a single element."
        )
    vectors = None if v is None else _vector(v, tensors, isinstance(inputs, tuple), name)
    leaves, raw, outs = _call(func, inputs, create_graph, name, strict)
    _refuse_several(name, raw)
    vectors = tuple(aten.ones_like(t) for t in leaves) if vectors is None else vectors
    first = _gradients(outs, leaves, [aten.ones_like(outs[0])], True)
    _refuse_constant_slopes(first, "jacobian", strict)
    pairs = [(g, w) for g, w in zip(first, vectors, strict=True) if g is not None]
    product = [(g * w).sum() for g, w in pairs if g.requires_grad]
    grads = _filled(
        grad(sum(product), leaves, create_graph=create_graph, allow_unused=True)
        if product
        else [None] * len(leaves),
        leaves,
        strict,
        create_graph,
        "double_back",
    )
    return _detached(raw, create_graph), _like(inputs, grads)
