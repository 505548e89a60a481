"""Owns grad, vjp, jvp and Jacobians as functions of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial, wraps
from operator import attrgetter, itemgetter
from types import FunctionType, MethodType
from typing import Any

from .._autograd.codegen import edge
from .._autograd.forward import refuse_sizes, refuse_whole
from .._autograd.function import BY_RULE
from .._autograd.grad_mode import LOCAL, MODES, enable_grad
from .._autograd.graph import FrozenHooks
from .._autograd.layer import CAPTURED
from .._autograd.node import LEAF, AccumulateGrad, counter
from .._autograd.surface import grad as _grad
from .._dispatch.dispatch_modes import unseen
from .._functional.printing import TRANSFORMED, tensor_text
from .._tensor.tensor import Tensor, wrap
from ..nn.modules.module import Module
from ..ops.spec import aten
from ..utils._pytree import (
    tree_flatten,
    tree_map_only,
    tree_unflatten,
    treespec_pprint,
)
from ._batched import (
    BatchedTensor,
    Unbatched,
    at,
    batched,
    innermost,
    lifted,
    ordered,
    printed_level,
    sizes,
    wrapped_text,
)
from ._rules import whole

_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an"
    " issue with your use case."
)


class _Deriving:
    """A function being differentiated: inside, gradients are recorded, `backward` is refused.

    Its inputs are leaves of its own, which lead nowhere once it is done.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.active, self.start = True, next(counter)
        self.inputs: dict[int, Tensor] = {}  # what it gives the function, by id
        self.strict, self.is_reverse = False, True
        self.mapped = False  # whether torch runs the function for a batch of tangents

    def __enter__(self) -> None:
        self.recording, self.outer, self.hooks = LOCAL.grad, LOCAL.transforms, LOCAL.pack
        self.inference, LOCAL.inference = LOCAL.inference, False
        if self.is_reverse:
            LOCAL.pack = FrozenHooks(_HOOKS, LOCAL.pack)
        LOCAL.derivatives += 1
        LOCAL.transforms = (*LOCAL.transforms, *([0] if self.mapped else []), self)
        LOCAL.grad = True

    def __exit__(self, *error: object) -> None:
        LOCAL.grad, self.active, LOCAL.transforms = self.recording, False, self.outer
        LOCAL.pack, LOCAL.inference = self.hooks, self.inference
        LOCAL.derivatives -= 1

    def moved(self, func: Callable[..., Any], *args: Any) -> Any:
        """`func(*args)`, whose leaves have tangents: Functions without a `jvp` are refused."""
        outer, LOCAL.forwards = LOCAL.forwards, (*LOCAL.forwards, self)
        MODES.carried += 1
        try:
            return func(*args)
        finally:
            MODES.carried -= 1
            LOCAL.forwards = outer

    def fresh(self, value: Tensor) -> Tensor:
        """A tensor as a part of a graph of its own, still bound to an outer one.

        Under vmap it has the batch: each element of the batch has a gradient of its own.
        """
        return self.leaves(lifted(value, LOCAL.levels))

    def leaves(self, value: Tensor) -> Tensor:
        """A tensor, or the whole of a batch, as a part of a graph of its own."""
        if isinstance(value, BatchedTensor):
            return batched(self.leaves(value._value), value._level)
        if not isinstance(value, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        recorded = value.requires_grad
        alias = (lambda t: unseen(aten.alias, t)) if self.is_reverse else _unregistered
        before, LOCAL.inference = LOCAL.inference, False
        try:
            with enable_grad():  # what was not recorded outside may be asked for later
                leaf: Tensor = alias(value) if recorded else unseen(value.detach)
        finally:
            LOCAL.inference = before
        if not recorded:
            leaf.requires_grad_()
        if leaf._fn is not None:
            leaf._fn.deriving = self
        self.inputs[id(leaf)] = leaf
        return leaf

    def writable(self, leaf: Tensor) -> Tensor:
        """A leaf as what a function carried forward may write to; the memory is the leaf's."""
        if isinstance(leaf, BatchedTensor):
            return batched(self.writable(leaf._value), leaf._level)
        value = _unregistered(leaf)
        self.inputs[id(value)] = value
        return value

    def passed(self, arguments: Any) -> Any:
        """Arguments that nothing is derived by: writes to them leave no history outside."""

        def alias(value: Tensor) -> Tensor:
            apart = value if value.requires_grad else unseen(value.detach)
            self.inputs[id(apart)] = apart
            return apart

        return tree_map_only(Tensor, alias, arguments)

    def captured(self, target: Tensor) -> bool:
        """Whether the function reaches a tensor, or its base, otherwise than as an argument."""
        sought = [t for t in (target, target._base) if t is not None and id(t) not in self.inputs]
        return any(value is t for value in _reached(self.func) for t in sought)

    def settled(self, results: Any) -> Any:
        """Results, without history where it leads to nothing outside."""
        values = [t for t in tree_flatten(results)[0] if isinstance(t, Tensor) and t.requires_grad]
        outer = self._leading_out(values) if LOCAL.grad and values else set()

        def settle(value: Tensor) -> Tensor:
            return value if _node(value) in outer else unseen(value.detach)

        return tree_map_only(Tensor, settle, results)

    def _leading_out(self, values: list[Tensor]) -> set[Any]:
        """Nodes from which an edge leads, over others, to a leaf that is alive outside."""
        outer, inner = set(), {}
        stack = [_node(v) for v in values]
        while stack:
            node = stack.pop()
            if node in outer or node in inner:
                continue
            if isinstance(node, AccumulateGrad):
                owner = vars(node).get("deriving")
                if node.seq - LEAF < self.start if owner is None else owner.active:
                    outer.add(node)
            elif node.seq < self.start:
                outer.add(node)
            else:
                inner[node] = [e[0] for e in node.edges if e is not None]
                stack += inner[node]
        if outer:
            for node in sorted(inner, key=attrgetter("seq")):
                if not outer.isdisjoint(inner[node]):
                    outer.add(node)
        return outer


def _unregistered(value: Tensor) -> Tensor:
    """An alias with a history of its own: writes to the memory leave it as it is."""
    alias, apart = unseen(aten.alias, value), wrap(value._geom, value._storage)
    apart._fn, apart._nr = alias._fn, alias._nr
    return apart


def _reached(func: Any) -> Iterator[Tensor]:
    """The tensors that a function finds by its closure, its globals, its object and modules."""
    seen: set[int] = set()
    stack = [func]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Module):
            yield from value.parameters()
            yield from value.buffers()
        elif isinstance(value, partial):
            stack += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, MethodType):
            stack += [value.__func__, value.__self__, *vars(value.__self__).values()]
        elif isinstance(value, FunctionType):
            stack += [*_contents(value), *(value.__defaults__ or ())]
            if not str(value.__module__).startswith(_PACKAGE):
                names = value.__code__.co_names
                stack += [value.__globals__[n] for n in names if n in value.__globals__]


def _contents(function: FunctionType) -> list[Any]:
    """What the closure of a function holds by now."""
    contents = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not yet bound
            contents.append(cell.cell_contents)
    return contents


_PACKAGE = __name__.partition(".")[0] + "."


def _is_captured(target: Tensor) -> bool:
    """Whether the innermost transform differentiates a function that captured a tensor."""
    level = LOCAL.transforms[-1] if LOCAL.transforms else None
    return isinstance(level, _Deriving) and level.captured(target)


CAPTURED.append(_is_captured)


def _node(value: Tensor) -> Any:
    """Where the gradient of a tensor, or of the whole of a batch, goes."""
    while isinstance(value, BatchedTensor):
        value = value._value
    to = edge(value)
    return to and to[0]


def _levels_of(values: Sequence[Any]) -> set[Any]:
    """The functions being differentiated to whose leaves a way leads from one of the values."""
    stack = [_node(v) for v in values if isinstance(v, Tensor)]
    seen: set[Any] = {None}
    levels: set[Any] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad) or "deriving" in vars(node):
            levels.add(vars(node).get("deriving"))
        stack += [e[0] for e in node.edges if e is not None]
    return levels


def _moves(values: Sequence[Any]) -> bool:
    """Whether a value has a tangent of a function that is being run."""
    return not _levels_of(values).isdisjoint(LOCAL.forwards)


def _layered_text(value: Tensor) -> str:
    """A tensor inside of functions being differentiated, as torch shows it: in layers."""
    inside = _levels_of([value])
    levels = [n for n, level in enumerate(LOCAL.transforms, 1) if level in inside]
    inner, batches = value, []
    while isinstance(inner, BatchedTensor):
        batches.append((printed_level(inner._level), inner))
        inner = inner._value
    text = tensor_text(inner if None in inside else inner.detach())
    for level, batch in sorted([*((n, None) for n in levels), *batches], key=itemgetter(0)):
        text = wrapped_text("GradTracking" if batch is None else "Batched", level, text)
    return text


BY_RULE["moves"] = _moves
BY_RULE["only_moves"] = lambda values: _levels_of(values).issubset(LOCAL.forwards)
TRANSFORMED.append(_layered_text)


def _split(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """What is differentiated, and the rest; RuntimeError in torch's words for no such pair."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def _beside(aux: Any, level: _Deriving) -> Any:
    """What a function gives beside its value, without history; RuntimeError if no tensors."""
    for value in tree_flatten(aux)[0]:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")
    return level.settled(aux)


def _gradients(outs: list[Any], leaves: list[Any], weights: list[Any] | None) -> list[Any]:
    differentiable = [i for i, o in enumerate(outs) if isinstance(o, Tensor) and o.requires_grad]
    if not differentiable or not leaves:
        return [aten.zeros_like(t) for t in leaves]
    some = None if weights is None else [weights[i] for i in differentiable]
    parts = _pulled([outs[i] for i in differentiable], leaves, some)
    return [aten.zeros_like(t) if g is None else g for t, g in zip(leaves, parts, strict=True)]


def _pulled(outs: list[Any], leaves: list[Any], weights: list[Any] | None) -> Sequence[Any]:
    """Gradients of batches: what is differentiated is the whole, whose elements are apart."""
    level = innermost(outs)
    if not level:
        some = None if weights is None else tuple(weights)
        return _grad(tuple(outs), tuple(leaves), some, create_graph=True, allow_unused=True)
    if not all(at(leaf, level) for leaf in leaves):
        raise Unbatched("a gradient of a batch by what has none")
    size = sizes(outs, level)
    cotangents = [aten.ones_like(o) for o in outs] if weights is None else weights
    wholes = ([whole(v, level, size) for v in row] for row in (outs, leaves, cotangents))
    parts = _pulled(*wholes)
    return [None if g is None else ordered(g, level) for g in parts]


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func` and its value; RuntimeError if no scalar."""

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        numbers = argument_numbers(argnums, args)
        parts = [tree_flatten(args[n]) for n in numbers]
        level = _Deriving(func)
        fresh = [[level.fresh(v) for v in leaves] for leaves, _ in parts]
        arguments = [
            a if {n, n - len(args)} & {*numbers} else level.passed(a) for n, a in enumerate(args)
        ]
        for n, values, (_, spec) in zip(numbers, fresh, parts, strict=True):
            arguments[n] = tree_unflatten(values, spec)
        with level:
            output = func(*arguments, **level.passed(kwargs))
            value, aux = _split(output, has_aux, "grad_and_value(f)(*args)")
            _check_scalar(value)
            gradients = iter(_gradients([value], [v for row in fresh for v in row], None))
        grads = [tree_unflatten([next(gradients) for _ in row], spec)
                 for row, (_, spec) in zip(fresh, parts, strict=True)]  # fmt: skip
        result = grads[0] if isinstance(argnums, int) else tuple(grads)
        result, value = level.settled((result, value))
        return result, (value, _beside(aux, level)) if has_aux else value

    return inside


def argument_numbers(argnums: int | Sequence[int], args: Sequence[object]) -> tuple[int, ...]:
    """`argnums` as a tuple; RuntimeError in torch's words for what numbers no argument."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = tuple(n % len(args) for n in numbers)
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")
    return numbers


def _check_scalar(value: object) -> None:
    if not isinstance(value, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}"
        )
    if value.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor"
            f" with {value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `func` with respect to arguments `argnums`."""
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return inside


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`func(*primals)`, and a function from cotangents to the vector-Jacobian product."""
    return pullback(func, primals, has_aux, refuse_outputs)


def pullback(
    func: Callable[..., Any],
    primals: Any,
    has_aux: bool,
    refuse: Callable[[Any], None],
    name: str = "vjp(f, *primals)",
) -> Any:
    leaves, spec = tree_flatten(primals)
    level = _Deriving(func)
    fresh = [level.fresh(v) for v in leaves]
    with level:
        output = func(*tree_unflatten(fresh, spec))
    result, aux = _split(output, has_aux, name)
    outs, out_spec = tree_flatten(result)
    refuse(outs)

    def product(cotangents: Any, retain_graph: bool = True, create_graph: bool = True) -> Any:
        weights, its_spec = tree_flatten(cotangents)
        if its_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of"
                f" outputs to the function. cotangents: {treespec_pprint(its_spec)}, primal"
                f" output: {treespec_pprint(out_spec)}"
            )
        with enable_grad():
            gradients = tree_unflatten(_gradients(outs, fresh, weights), spec)
        return level.settled(gradients)

    settled = level.settled(tree_unflatten(outs, out_spec))
    return (settled, product, _beside(aux, level)) if has_aux else (settled, product)


def refuse_outputs(outs: Sequence[Tensor]) -> None:
    """RuntimeError in torch's words for outputs that are no tensors, or have no derivative."""
    _refuse_no_tensors(outs)
    for out in outs:
        if not (out.is_floating_point() or out.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got"
                f" Tensor with dtype {out.dtype}"
            )


def _refuse_no_tensors(outs: Sequence[object]) -> None:
    """RuntimeError in torch's words where a function to be pulled back gives no tensors."""
    refuse_others(outs, "vjp(f, *primals)")


def refuse_others(outs: Sequence[object], name: str) -> None:
    """RuntimeError in torch's words for no output, and for the first that is no tensor."""
    if not outs or (len(outs) == 1 and outs[0] is None):
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {outs})"
        )
    for out in outs:
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type"
                f" {type(out)}"
            )


def _refuse_pairs(primals: object, tangents: object) -> None:
    """RuntimeError in torch's words where primals and tangents do not go together."""
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    (leaves, spec), (moved, other) = tree_flatten(primals), tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example,"
            " if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure"
            f" {spec} and tangents with structure {other}"
        )
    if not leaves:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    for value, tangent in zip(leaves, moved, strict=True):
        for what, part in (("primals", value), ("tangents", tangent)):
            if not isinstance(part, Tensor):
                raise RuntimeError(
                    f"{name}: Expected {what} to only contain Tensors, got {type(part)}"
                )
        refuse_sizes(value, tangent)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """`func(*primals)` and its Jacobian-vector product."""
    _refuse_pairs(primals, tangents)
    refuse_whole("primal", *tree_flatten(primals)[0])
    refuse_whole("tangent", *tree_flatten(tangents)[0])
    value, push, *aux = pushforward(func, primals, has_aux, strict)
    return value, push(*tree_flatten(tangents)[0]), *aux


def pushforward(
    func: Callable[..., Any],
    primals: Any,
    has_aux: bool,
    strict: bool = False,
    mapped: bool = False,
) -> Any:
    """`func(*primals)`, a function of tangents to its product by the Jacobian, and what is beside.

    The product with a cotangent is linear in it; its derivative by that is the one by a tangent.
    `mapped`: tangents come as batches, as messages of the function may show.
    """
    leaves, spec = tree_flatten(primals)
    aux: object = None
    outs_spec = spec

    def flat(*values: Tensor) -> tuple[Tensor, ...]:
        nonlocal aux, outs_spec
        output = func(*tree_unflatten(values, spec))
        result, aux = _split(output, has_aux, "jvp(f, primals, tangents)")
        outs, outs_spec = tree_flatten(result)
        refuse_others(outs, "jvp(f, primals, tangents)")
        return tuple(outs)

    level = _Deriving(func)
    level.strict, level.mapped, level.is_reverse = strict, mapped, False
    fresh = [level.fresh(v) for v in leaves]
    with level:
        outs = level.moved(flat, *map(level.writable, fresh))
        if strict and any(level not in _levels_of([out]) for out in outs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the"
                " inputs. This is not allowed with strict=True."
            )
        slopes = [o for o in outs if o.is_floating_point() or o.is_complex()]
        weights = [level.leaves(aten.zeros_like(o)) for o in slopes]
        outer, LOCAL.pushing = LOCAL.pushing, True
        try:
            backward = _gradients(slopes, fresh, weights)
        finally:
            LOCAL.pushing = outer
    sloped = {id(o) for o in slopes}

    def push(*tangents: Tensor) -> object:
        with level:
            products = iter(_gradients(backward, weights, list(tangents)))
        moved = [next(products) if id(o) in sloped else aten.zeros_like(o) for o in outs]
        return level.settled(tree_unflatten(moved, outs_spec))

    settled = level.settled(tree_unflatten(list(outs), outs_spec))
    return (settled, push, _beside(aux, level)) if has_aux else (settled, push)
