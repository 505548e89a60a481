"""Runs one op of the bundled simulator on torch tensors, in any memory layout, and compares."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

LAYOUTS = ("contiguous", "offset", "step", "transposed")
NAMES = {
    torch.float32: "FLOAT",
    torch.float16: "FLOAT16",
    torch.bfloat16: "BFLOAT16",
    torch.float64: "DOUBLE",
    torch.int8: "INT8",
    torch.int16: "INT16",
    torch.int32: "INT32",
    torch.int64: "INT64",
    torch.uint8: "UINT8",
    torch.uint64: "UINT64",
    torch.bool: "BOOL",
    torch.complex64: "COMPLEX64",
    torch.complex128: "COMPLEX128",
}
# The format that torch_npu gives tensors of a rank: some operators refuse ND.
FORMATS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
CODES = {"FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "INT64": 9,
         "UINT64": 10,
         "DOUBLE": 11, "BOOL": 12, "COMPLEX64": 16, "COMPLEX128": 17, "BFLOAT16": 27}  # fmt: skip
# Relative to the result's size, by storage dtype: a few units in the last place.
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 3e-6,
             torch.complex64: 3e-6}  # fmt: skip


class Out:
    """An output argument and what it should hold; `given` is its content before the call."""

    def __init__(self, expected: Any, given: Any = None, tolerance: float | None = None) -> None:
        self.expected, self.tolerance = expected, tolerance
        self.given = torch.zeros_like(expected) if given is None else given


def laid_out(tensor: Any, layout: str) -> Any:
    """The same values over a storage of its own in another layout."""
    if tensor.dim() == 0 or layout == "contiguous":
        return tensor.clone(memory_format=torch.contiguous_format)
    if layout == "transposed":
        return tensor.transpose(0, -1).clone(memory_format=torch.contiguous_format).transpose(0, -1)
    if layout == "offset":
        wide = torch.zeros([n + 2 for n in tensor.shape], dtype=tensor.dtype)
        view = wide[tuple(slice(1, n + 1) for n in tensor.shape)]
    else:
        wide = torch.zeros([*tensor.shape[:-1], tensor.shape[-1] * 2], dtype=tensor.dtype)
        view = wide[..., ::2]
    view.copy_(tensor)
    return view


def same(given: Any, expected: Any, tolerance: float | None = None) -> None:
    """Fail unless equal up to the tolerance of the dtype; NaN and infinities in the same places."""
    tol = TOLERANCE.get(expected.dtype, 1e-12) if tolerance is None else tolerance
    finite = expected[torch.isfinite(expected)] if expected.numel() else expected
    scale = float(finite.abs().max()) if finite.numel() and expected.dtype != torch.bool else 0.0
    exact = not (expected.is_floating_point() or expected.is_complex())
    torch.testing.assert_close(
        given,
        expected,
        rtol=0 if exact else tol,
        atol=0 if exact else tol * min(scale, 1.0),
        equal_nan=True,
    )


class Simulator:
    """Calls ops by name with torch tensors, numbers and tuples in the header's order."""

    def __init__(self, cann: Any, formats: Mapping[int, str] = FORMATS) -> None:
        self.cann, self.formats = cann, formats

    def put(self, tensor: Any) -> Any:
        """The tensor's whole storage on the device, seen through its own geometry."""
        flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        made = self.cann.empty((flat.numel(),), NAMES[tensor.dtype])
        if flat.numel():
            made.buffer.write(flat.view(torch.uint8).numpy())
        form = self.formats.get(tensor.dim(), "ND")
        return made.view(tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), form)

    def get(self, device: Any, like: Any) -> Any:
        """The device view's content as a dense torch tensor."""
        if not like.numel():
            return torch.empty_like(like)
        array = np.ascontiguousarray(device.numpy())
        raw = torch.from_numpy(array.view(np.uint8).reshape(-1).copy())
        return raw.view(like.dtype).reshape(like.shape)

    def run(self, op: str, *args: Any, layout: str = "contiguous") -> list[Any]:
        """Launch once; the outputs' contents in order."""
        outs: list[tuple[Any, Any]] = []

        def give(arg: Any) -> Any:
            if isinstance(arg, Out):
                made = self.put(laid_out(arg.given, layout))
                outs.append((made, arg))
                return made
            if isinstance(arg, torch.Tensor):
                expanded = 0 in arg.stride()
                return self.put(arg if expanded else laid_out(arg, layout))
            if isinstance(arg, torch.dtype):
                return CODES[NAMES[arg]]
            if isinstance(arg, (tuple, list)):
                return tuple(give(item) for item in arg)
            return arg

        self.cann.ops[op](*[give(arg) for arg in args])
        self.synchronize()
        return [(self.get(made, arg.expected), arg) for made, arg in outs]

    def synchronize(self) -> None:
        self.cann.runtime.current_stream().synchronize()

    def check(self, op: str, *args: Any, layouts: Sequence[str] = LAYOUTS) -> None:
        """Run in every layout and compare each Out with what it expects.

        An op that refuses a dtype which its document leaves out is right too; FLOAT is never
        left out of the ops tested here.
        """
        from aclnn_bindings.runtime.status import AclError

        for layout in layouts:
            try:
                results = self.run(op, *args, layout=layout)
            except AclError as error:
                listed = "dtype support list" in str(error) and error.code == 161002
                if not listed or "for DT_FLOAT," in str(error):
                    raise
                return
            for given, arg in results:
                try:
                    same(given, arg.expected, arg.tolerance)
                except AssertionError as error:
                    raise AssertionError(f"{op}, {layout} layout: {error}") from None


def accepted(sim: Simulator, op: str, *args: Any, layouts: Sequence[str] = LAYOUTS) -> None:
    """Compare in every layout, without the indulgence of `check` for documented dtype lists."""
    for layout in layouts:
        for given, out in sim.run(op, *args, layout=layout):
            same(given, out.expected, out.tolerance)


def refused(sim: Simulator, message: str, op: str, *args: Any) -> None:
    """Phase 1 answers 161002 with a message that matches."""
    from aclnn_bindings.runtime.status import AclError

    with pytest.raises(AclError, match=message) as error:
        sim.run(op, *args)
    assert error.value.code == 161002
