"""Owns the laws about values and metadata: torch, meta, devices, layouts, in place, writeback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

import mindtorch
from mindtorch import Tensor
from mindtorch.ops.rules import needs_values
from mindtorch.ops.samples import Sample
from mindtorch.ops.spec import Op
from mindtorch.testing import kernels

from ..judge.agreement import Tolerance
from .compare import (
    LawBroken,
    NotApplicable,
    as_list,
    call,
    compare_metadata,
    compare_values,
    limit,
    made_on,
    oracle_function,
    with_device,
    working,
)


def cpu_matches_oracle(op: Op, sample: Sample, torch: ModuleType) -> None:
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
        compare_metadata(op, f"result {i} against torch", a, b)
        compare_values(op, f"result {i} against torch", a, b, limit(op, a))
        _compare_aliasing(op, a, args, b, theirs)


def _compare_aliasing(op: Op, got: Tensor, args: Any, expected: Any, theirs: Any) -> None:
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


def errors_match_oracle(op: Op, sample: Sample, torch: ModuleType) -> None:
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
    except (RuntimeError, TypeError, ValueError, LookupError, AssertionError) as error:
        return error
    return None


def meta_matches_cpu(op: Op, sample: Sample) -> None:
    """On meta: the same dtype, shape and strides, and no data."""
    working(sample)
    args, kwargs = sample.make(mindtorch)
    expected = as_list(call(op, args, kwargs))
    on_meta = sample.map(lambda a: a.make(mindtorch).to("meta"))
    kwargs = with_device(op, sample.make(mindtorch)[1], "meta")
    if any(a.__class__ is not mindtorch.Tensor for a in expected):
        raise NotApplicable("a result is no tensor")
    try:
        got = as_list(call(op, on_meta[0], {**kwargs, **_tensors(on_meta[1])}))
    except (RuntimeError, NotImplementedError) as error:
        if needs_values(error):
            raise NotApplicable(str(error)) from None
        raise
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if a.device.type != "meta":
            raise LawBroken(f"{op.name}: result {i} is on {a.device}, expected meta")
        compare_metadata(op, f"result {i} on meta", a, b)


_SAME = Tolerance(0, 0, "the same rows run")


def replay_matches_body(op: Op, sample: Sample) -> None:
    """A composite's recorded rows give with other values what its body gives with them."""
    working(sample)
    args, kwargs = sample.make(mindtorch)
    args_of, kwargs_of = sample.map(lambda a: replace(a, values=np.roll(a.array(), 1)))
    others, other_kwargs = Sample(tuple(args_of), kwargs_of).make(mindtorch)
    kernels.forget_plans()
    try:
        expected = as_list(call(op, others, other_kwargs))
    except (RuntimeError, IndexError, ValueError):
        raise NotApplicable("the sample's values fit their places alone") from None
    for _ in range(3):
        call(op, args, kwargs)
    for i, (a, b) in enumerate(zip(as_list(call(op, others, other_kwargs)), expected, strict=True)):
        if isinstance(b, Tensor):
            compare_metadata(op, f"result {i} replayed", a, b)
            compare_values(op, f"result {i} replayed", a, b, _SAME)


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
    working(sample)
    args, kwargs = sample.make(mindtorch)
    expected = as_list(call(op, args, kwargs))
    there, there_kwargs = made_on(op, sample, device)
    got = as_list(call(op, there, there_kwargs))
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(b, Tensor):
            continue
        compare_metadata(op, f"result {i} on {device}", a, b)
        compare_values(op, f"result {i} on {device}", a, b, limit(op, b))


def strided_matches_contiguous(op: Op, sample: Sample, device: str = "cpu") -> None:
    """Inputs in any layout give the values of contiguous ones."""
    working(sample)
    if op.testing.layout_bound:
        raise NotApplicable("the op is about layout itself")
    args, kwargs = made_on(op, sample, device)
    expected = as_list(call(op, args, kwargs))
    for layout in ("strided", "transposed", "offset"):
        args, kwargs = sample.with_layout(layout).make(mindtorch, device)
        try:
            got = as_list(call(op, args, kwargs))
        except RuntimeError as error:
            if "stride" in str(error):
                raise NotApplicable(f"no view of {layout} inputs: {error}") from None
            raise
        for a, b in zip(got, expected, strict=True):
            if isinstance(b, Tensor):
                compare_values(op, f"{layout} inputs", a, b, limit(op, b))


def inplace_matches_functional(op: Op, sample: Sample, device: str = "cpu") -> None:
    """`name_` leaves in its first argument what the functional op gives, and bumps the version."""
    working(sample)
    if not op.writes.inplace:
        raise NotApplicable(f"{op.name} has no in-place form")
    args, kwargs = made_on(op, sample, device)
    expected = call(op, args, kwargs)
    args, kwargs = made_on(op, sample, device)
    target = args[0]
    if tuple(expected.shape) != tuple(target.shape) or expected.dtype is not target.dtype:
        raise NotApplicable("the result does not fit its first argument")
    before = target._version
    returned = op.entry("inplace")(*args, **kwargs)
    if returned is not target:
        raise LawBroken(f"{op.name}_: did not return its first argument")
    if target._version != before + 1:
        raise LawBroken(f"{op.name}_: version went from {before} to {target._version}")
    compare_values(op, "in place", target, expected, limit(op, expected))


def out_matches_functional(op: Op, sample: Sample, device: str = "cpu") -> None:
    """`out=` receives what the functional op gives, also when it must be resized."""
    working(sample)
    layer = op.body is not None and "nn" in op.places
    if op.is_view or "function" not in op.places or layer or not kernels.takes_out(op.base_name):
        raise NotApplicable(f"{op.name} has no out= form")
    args, kwargs = made_on(op, sample, device)
    expected = call(op, args, kwargs)
    if not isinstance(expected, Tensor):
        raise NotApplicable("several results")
    if op.api.variadic == "alone":
        (args,) = args  # torch takes tensors there, and no list of them
    shapes = (tuple(expected.shape), (0,))
    for shape in shapes:
        out = mindtorch.empty(shape, dtype=expected.dtype, device=device)
        returned = op.entry("function")(*args, **kwargs, out=out)
        if returned is not out:
            raise LawBroken(f"{op.name}: out= was not returned")
        compare_values(op, "out=", out, expected, limit(op, expected))


def writeback_matches_eager(op: Op, sample: Sample, device: str = "cpu") -> None:
    """Under functionalize, in place through a view gives what it gives eagerly."""
    working(sample)
    if not op.writes.inplace:
        raise NotApplicable(f"{op.name} has no in-place form")
    expected = _write_base(op, sample, device, None)
    with mindtorch.functionalize():
        got = _write_base(op, sample, device, True)
    compare_values(op, "writeback", got, expected, limit(op, expected))


def _write_base(op: Op, sample: Sample, device: str, _: bool | None) -> Any:
    args, kwargs = made_on(op, sample, device)
    target = args[0]
    if target.ndim > 1:
        base = target.transpose(0, -1).contiguous()
        args[0] = base.transpose(0, -1)
    else:
        base = target
    try:
        op.entry("inplace")(*args, **kwargs)
    except RuntimeError as error:
        raise NotApplicable(f"eager refuses too: {error}") from None
    return base


def on_device(law: Callable[[Op, Sample, str], None]) -> Callable[[Op, Sample, str], None]:
    """A law for a device whose rows may lack a kernel, and whose operators may lack a dtype."""

    def run(op: Op, sample: Sample, device: str) -> None:
        if device in op.kernels.absent:
            raise NotApplicable(f"{op.name} on {device}: {op.kernels.absent[device]}")
        if device not in kernels.devices(op) and op.body is None and not op.is_view:
            raise NotApplicable(f"the row of {op.name} has no kernel for {device}")
        try:
            law(op, sample, device)
        except RuntimeError as error:
            raise unclaimed(error) or error from None

    return run
