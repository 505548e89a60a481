"""Owns what must hold for every op, whoever asks: tests call these laws, and so does `check`.

A law takes an op and a sample and raises `LawBroken`, or `NotApplicable` with the reason. Laws
whose names end in `oracle` compare with torch, which the caller passes in: this module never
imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

import mindtorch

from ._backends.registry import registry
from ._dispatch.entry import entry
from ._tensor import Tensor
from .ops.samples import Arg, Sample
from .ops.spec import MISSING, OPS, Op
from .ops.tolerance import Tolerance, tolerance


class LawBroken(AssertionError):
    """What was got, what was expected, and for which call."""


class NotApplicable(Exception):
    """The law says nothing about this op and sample; the message says why."""


def call(op: Op, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """The op's functional entry."""
    return entry(op, "aten")(*args, **kwargs)


def as_list(result: Any) -> list[Any]:
    """Results of one call as a list."""
    return list(result) if isinstance(result, tuple | list) else [result]


def to_numpy(tensor: Any) -> Any:
    """The values of a mindtorch or torch tensor, on the host, bfloat16 as float32."""
    host = tensor.detach().cpu()
    if str(host.dtype) == "torch.bfloat16":
        host = host.float()
    return np.array(host.numpy(force=True))


def made_on(op: Op, sample: Sample, device: str) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arguments on a device; a factory is told the device instead."""
    args, kwargs = sample.make(mindtorch, device)
    return args, _told(op, kwargs, device)


def _told(op: Op, kwargs: dict[str, Any], device: str) -> dict[str, Any]:
    if any(a.type == "Device" for a in op.schema.args):
        return {"device": mindtorch.device(device), **kwargs}
    return kwargs


def samples(op: Op) -> list[Sample]:
    """The row's samples; empty when it has none."""
    return list(op.samples()) if op.samples is not None else []


def _limit(op: Op, result: Any) -> Tolerance:
    return tolerance(op.tolerance, result.dtype)


def compare_values(op: Op, what: str, got: Any, expected: Any, limit: Tolerance) -> None:
    """LawBroken unless values agree within the op's tolerance; NaNs and infinities must match."""
    a, b = to_numpy(got), to_numpy(expected)
    if a.shape != b.shape:
        raise LawBroken(f"{op.name}: {what}: shape {a.shape}, expected {b.shape}")
    if limit.relative == float("inf"):
        return
    wide = np.complex128 if a.dtype.kind == "c" or b.dtype.kind == "c" else np.float64
    if a.dtype.kind not in "fc":
        close = a == b
    else:
        x, y = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            close = np.abs(x - y) <= limit.absolute + limit.relative * np.abs(y)
        close |= (x == y) | (np.isnan(x) & np.isnan(y))
    if not np.all(close):
        at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(close)))
        raise LawBroken(
            f"{op.name}: {what}: got {np.atleast_1d(a)[at]!r} at {at}, expected"
            f" {np.atleast_1d(b)[at]!r} (relative {limit.relative:g}, absolute {limit.absolute:g})"
        )


def _compare_metadata(op: Op, what: str, got: Any, expected: Any, strides: bool = True) -> None:
    names = ("dtype", "shape") + (("strides",) if strides and expected.numel() else ())
    for name in names:
        a = str(tuple(got.stride()) if name == "strides" else _plain(getattr(got, name)))
        b = str(tuple(expected.stride()) if name == "strides" else _plain(getattr(expected, name)))
        if a != b:
            raise LawBroken(f"{op.name}: {what}: {name} {a}, expected {b}")


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple) else value


def oracle_function(op: Op, torch: Any) -> Any:
    """torch's function for this row; NotApplicable where torch has none."""
    if op.oracle is not None:
        return op.oracle(torch)
    name = op.base_name
    places = (torch.Tensor, torch, torch.nn.functional, torch._C._nn)
    for place in places if not name.startswith("_") else ():
        found = getattr(place, name, None)
        if found is not None:
            return found
    try:
        return getattr(torch.ops.aten, name)
    except AttributeError:
        raise NotApplicable(f"torch has no {name}") from None


def cpu_matches_oracle(op: Op, sample: Sample, torch: Any) -> None:
    """Values, dtype, shape, strides and aliasing on cpu are torch's."""
    if sample.error:
        raise NotApplicable("the sample is of an error")
    function = oracle_function(op, torch)
    args, kwargs = sample.make(mindtorch)
    theirs, their_kwargs = sample.make(torch)
    expected = as_list(function(*theirs, **their_kwargs))
    got = as_list(call(op, args, kwargs))
    if len(got) != len(expected):
        raise LawBroken(f"{op.name}: {len(got)} results, expected {len(expected)}")
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(a, Tensor):
            continue
        _compare_metadata(op, f"result {i} against torch", a, b)
        compare_values(op, f"result {i} against torch", a, b, _limit(op, a))
        _compare_aliasing(op, a, args, b, theirs)


def _compare_aliasing(op: Op, got: Any, args: Any, expected: Any, theirs: Any) -> None:
    if not args or not isinstance(args[0], Tensor) or not expected.numel():
        return
    ours = got._storage is args[0]._storage
    same = expected.untyped_storage().data_ptr() == theirs[0].untyped_storage().data_ptr()
    if ours != same:
        raise LawBroken(f"{op.name}: shares memory with its input: {ours}, expected {same}")
    if same and got.storage_offset() != expected.storage_offset():
        raise LawBroken(
            f"{op.name}: storage offset {got.storage_offset()}, expected"
            f" {expected.storage_offset()}"
        )


def errors_match_oracle(op: Op, sample: Sample, torch: Any) -> None:
    """A wrong call raises torch's class; and torch's text up to addresses and file names."""
    if not sample.error:
        raise NotApplicable("the sample is of a working call")
    args, kwargs = sample.make(mindtorch)
    theirs, their_kwargs = sample.make(torch)
    expected = _raised(lambda: oracle_function(op, torch)(*theirs, **their_kwargs))
    got = _raised(lambda: call(op, args, kwargs))
    if type(got) is not type(expected):
        raise LawBroken(f"{op.name}: raised {got!r}, expected {expected!r}")


def _raised(function: Callable[[], Any]) -> BaseException | None:
    try:
        function()
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        return error
    return None


def _working(sample: Sample) -> None:
    if sample.error:
        raise NotApplicable("the sample is of an error")


def meta_matches_cpu(op: Op, sample: Sample) -> None:
    """On meta: the same dtype, shape and strides, and no data."""
    _working(sample)
    args, kwargs = sample.make(mindtorch)
    expected = as_list(call(op, args, kwargs))
    on_meta = sample.map(lambda a: a.make(mindtorch).to("meta"))
    kwargs = _told(op, sample.make(mindtorch)[1], "meta")
    if any(a.__class__ is not mindtorch.Tensor for a in expected):
        raise NotApplicable("a result is no tensor")
    try:
        got = as_list(call(op, on_meta[0], {**kwargs, **_tensors(on_meta[1])}))
    except (RuntimeError, NotImplementedError) as error:
        if "for Meta" in str(error) or "meta tensors" in str(error):
            raise NotApplicable(str(error)) from None
        raise
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if a.device.type != "meta":
            raise LawBroken(f"{op.name}: result {i} is on {a.device}, expected meta")
        _compare_metadata(op, f"result {i} on meta", a, b)


def _tensors(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if isinstance(v, Tensor)}


def unclaimed(error: RuntimeError) -> NotApplicable | None:
    """The reason why a device need not run this: its operator does not claim the dtype.

    161002 (ACLNN_ERR_PARAM_INVALID) with a list of supported dtypes, as CANN words it.
    """
    if getattr(error, "code", 0) == 161002 and "dtype support list" in str(error):
        return NotApplicable(str(error))
    return None


def device_matches_cpu(op: Op, sample: Sample, device: str = "npu") -> None:
    """On `device`: the cpu's dtype, shape, strides and values."""
    _working(sample)
    if device not in ("cpu", *registry.devices(op)) and op.body is None and not op.is_view:
        raise NotApplicable(f"the row of {op.name} has no kernel for {device}")
    args, kwargs = sample.make(mindtorch)
    expected = as_list(call(op, args, kwargs))
    there, there_kwargs = made_on(op, sample, device)
    try:
        got = as_list(call(op, there, there_kwargs))
    except RuntimeError as error:
        raise unclaimed(error) or error from None
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(b, Tensor):
            continue
        _compare_metadata(op, f"result {i} on {device}", a, b)
        compare_values(op, f"result {i} on {device}", a, b, _limit(op, b))


def strided_matches_contiguous(op: Op, sample: Sample, device: str = "cpu") -> None:
    """Inputs in any layout give the values of contiguous ones."""
    _working(sample)
    if op.name.startswith(("as_strided", "empty", "view", "_embed")):
        raise NotApplicable("the op is about layout itself")
    args, kwargs = made_on(op, sample, device)
    expected = as_list(call(op, args, kwargs))
    for layout in ("strided", "transposed", "offset"):
        args, kwargs = sample.with_layout(layout).make(mindtorch, device)
        for a, b in zip(as_list(call(op, args, kwargs)), expected, strict=True):
            if isinstance(b, Tensor):
                compare_values(op, f"{layout} inputs", a, b, _limit(op, b))


def inplace_matches_functional(op: Op, sample: Sample, device: str = "cpu") -> None:
    """`name_` leaves in its first argument what the functional op gives, and bumps the version."""
    _working(sample)
    if not op.inplace:
        raise NotApplicable(f"{op.name} has no in-place form")
    args, kwargs = made_on(op, sample, device)
    expected = call(op, args, kwargs)
    args, kwargs = made_on(op, sample, device)
    target = args[0]
    if tuple(expected.shape) != tuple(target.shape) or expected.dtype is not target.dtype:
        raise NotApplicable("the result does not fit its first argument")
    before = target._version
    given = entry(op, "inplace")(*args, **kwargs)
    if given is not target:
        raise LawBroken(f"{op.name}_: did not return its first argument")
    if target._version != before + 1:
        raise LawBroken(f"{op.name}_: version went from {before} to {target._version}")
    compare_values(op, "in place", target, expected, _limit(op, expected))


def out_matches_functional(op: Op, sample: Sample, device: str = "cpu") -> None:
    """`out=` receives what the functional op gives, also when it must be resized."""
    _working(sample)
    if op.is_view or op.surface == "none" or op.name not in mindtorch._functional.FUNCTIONS:
        raise NotApplicable(f"{op.name} has no out= form")
    args, kwargs = made_on(op, sample, device)
    expected = call(op, args, kwargs)
    if not isinstance(expected, Tensor):
        raise NotApplicable("several results")
    shapes = (tuple(expected.shape), (0,))
    for shape in shapes:
        out = mindtorch.empty(shape, dtype=expected.dtype, device=device)
        given = entry(op, "function")(*args, **kwargs, out=out)
        if given is not out:
            raise LawBroken(f"{op.name}: out= was not returned")
        compare_values(op, "out=", out, expected, _limit(op, expected))


def writeback_matches_eager(op: Op, sample: Sample, device: str = "cpu") -> None:
    """Under functionalize, in place through a view gives what it gives eagerly."""
    _working(sample)
    if not op.inplace:
        raise NotApplicable(f"{op.name} has no in-place form")
    expected = _written(op, sample, device, None)
    with mindtorch.functionalize():
        got = _written(op, sample, device, True)
    compare_values(op, "writeback", got, expected, _limit(op, expected))


def _written(op: Op, sample: Sample, device: str, _: Any) -> Any:
    args, kwargs = made_on(op, sample, device)
    target = args[0]
    if target.ndim > 1:
        base = target.transpose(0, -1).contiguous()
        args[0] = base.transpose(0, -1)
    else:
        base = target
    try:
        entry(op, "inplace")(*args, **kwargs)
    except RuntimeError as error:
        raise NotApplicable(f"eager refuses too: {error}") from None
    return base


# ---- gradients


def differentiable(sample: Sample) -> list[Arg]:
    """The sample's tensors that can be differentiated."""
    found: list[Arg] = []

    def look(arg: Arg) -> Arg:
        if arg.dtype.startswith(("float", "bfloat")) and arg.grad:
            found.append(arg)
        return arg

    sample.map(look)
    return found


def _leaves(
    torch: Any, sample: Sample, device: str = "cpu"
) -> tuple[list[Any], dict[str, Any], list[Any]]:
    leaves: list[Any] = []

    def make(arg: Arg) -> Any:
        made = arg.make(torch, device)
        if arg.dtype.startswith(("float", "bfloat")) and arg.grad:
            made = made.detach().requires_grad_()
            leaves.append(made)
        return made

    args, kwargs = sample.map(make)
    return (
        args,
        {**sample.make(torch)[1], **{k: v for k, v in kwargs.items() if not isinstance(v, str)}},
        leaves,
    )


def _as_double(sample: Sample) -> Sample:
    def widen(arg: Arg) -> Arg:
        return replace(arg, dtype="float64") if arg.dtype.startswith(("float", "bfloat")) else arg

    args, kwargs = sample.map(widen)
    return Sample(tuple(args), kwargs, sample.error)


def _needs_gradient(op: Op, sample: Sample) -> None:
    _working(sample)
    if op.body is None and (op.grad is MISSING or not op.grad):
        raise NotApplicable(f"{op.name} is not differentiable")
    if not differentiable(sample) or op.tolerance == "random":
        raise NotApplicable("nothing to differentiate")


def _weights(torch: Any, out: Any, seed: int) -> Any:
    drawn = np.random.default_rng(seed).uniform(0.5, 1.5, tuple(out.shape))
    return (
        torch.tensor(drawn.reshape(-1).tolist(), dtype=out.dtype)
        .reshape(tuple(out.shape))
        .to(out.device)
    )


def _loss(torch: Any, result: Any) -> Any:
    total = None
    for i, out in enumerate(as_list(result)):
        if str(out.dtype).startswith("torch.float") and out.requires_grad:
            part = (out * _weights(torch, out, i)).sum()
            total = part if total is None else total + part
    return total


def gradients(torch: Any, function: Any, sample: Sample, order: int = 1) -> list[Any]:
    """First- or second-order gradients of a weighted sum of the results, zeros where unused."""
    args, kwargs, leaves = _leaves(torch, _as_double(sample))
    loss = _loss(torch, function(*args, **kwargs))
    if loss is None:
        raise NotApplicable("no result depends on a differentiable input")
    found = torch.autograd.grad(loss, leaves, create_graph=order > 1, allow_unused=True)
    if order == 1:
        return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=True)]
    again = [(g * g).sum() for g in found if g is not None and g.requires_grad]
    if not again:
        raise NotApplicable("the gradient is constant")
    second = torch.autograd.grad(sum(again), leaves, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, second, strict=True)]


_GRADIENT = Tolerance(1e-9, 1e-9, "float64 throughout; derivatives are written differently")


def gradients_match_oracle(op: Op, sample: Sample, torch: Any, order: int = 1) -> None:
    """Gradients (order 1) and gradients of gradients (order 2) are torch's, in float64."""
    _needs_gradient(op, sample)
    theirs = gradients(torch, oracle_function(op, torch), sample, order)
    ours = gradients(mindtorch, entry(op, "aten"), sample, order)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        compare_values(op, f"order {order} gradient of input {i}", a, b, _GRADIENT)


_DIFFERENCE = Tolerance(1e-5, 1e-6, "central differences of step 1e-6 in float64")


def gradients_match_differences(op: Op, sample: Sample) -> None:
    """Gradients agree with central differences, in float64 on cpu; needs no oracle."""
    _needs_gradient(op, sample)
    ours = gradients(mindtorch, entry(op, "aten"), sample)
    args, kwargs, leaves = _leaves(mindtorch, _as_double(sample))
    function = entry(op, "aten")
    for i, leaf in enumerate(leaves):
        with mindtorch.no_grad():
            numeric = _differences(lambda: function(*args, **kwargs), leaf)
        compare_values(op, f"gradient of input {i}", ours[i], numeric, _DIFFERENCE)


def _differences(function: Callable[[], Any], leaf: Any) -> Any:
    step = 1e-6
    flat = leaf.detach()._array
    found = np.zeros(flat.shape)
    for at in np.ndindex(flat.shape):
        held = flat[at]
        sides = []
        for sign in (1, -1):
            flat[at] = held + sign * step
            sides.append(_weighted_total(function()))
        flat[at] = held
        found[at] = (sides[0] - sides[1]) / (2 * step)
    return mindtorch.tensor(found)


def _weighted_total(result: Any) -> float:
    total = 0.0
    for i, out in enumerate(as_list(result)):
        if out.dtype.is_floating_point:
            total += float((out * _weights(mindtorch, out, i)).sum().item())
    return total


LAWS: dict[str, Callable[[Op, Sample], None]] = {
    "meta = cpu": meta_matches_cpu,
    "strided = contiguous": strided_matches_contiguous,
    "in place = functional": inplace_matches_functional,
    "out= = functional": out_matches_functional,
    "writeback = eager": writeback_matches_eager,
    "gradient = differences": gradients_match_differences,
}
ORACLE_LAWS: dict[str, Callable[[Op, Sample, Any], None]] = {
    "cpu = torch": cpu_matches_oracle,
    "errors = torch": errors_match_oracle,
    "gradient = torch": gradients_match_oracle,
    "second gradient = torch": lambda op, s, torch: gradients_match_oracle(op, s, torch, 2),
}


def concerns(law: str, op: Op, sample: Sample) -> bool:
    """Whether a law may say something about a case, judged without running anything."""
    if sample.error:
        return law == "errors = torch"
    if law == "errors = torch":
        return False
    if law in ("in place = functional", "writeback = eager"):
        return op.inplace
    if law == "out= = functional":
        return not (op.is_view or op.surface == "none" or "." in op.name)
    if "gradient" in law:
        known = op.body is not None or (op.grad is not MISSING and bool(op.grad))
        return known and op.tolerance != "random" and bool(differentiable(sample))
    return True


def cases() -> list[tuple[Op, int, Sample]]:
    """Every row with its samples, numbered."""
    return [(op, i, s) for op in OPS.values() for i, s in enumerate(samples(op))]
