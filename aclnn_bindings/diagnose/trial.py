"""A child program: one addition through these bindings, after the smoke test has passed without."""

from __future__ import annotations

from typing import Any

from .child import Steps, main


def trial(steps: Steps, request: Any) -> None:
    """`request`: root, the install's. The same sum as the smoke test's, from arrays to array."""
    with steps.step("bindings"):
        import numpy

        from ..cann import open_install

        values = numpy.arange(1, 7, dtype=numpy.float32).reshape(2, 3)
        with open_install(request["root"]) as cann:
            out = cann.empty(values.shape)
            device = cann.tensor(values)
            cann.ops.aclnnAdd(self=device, other=device, alpha=2.0, out=out)
            got = out.numpy()
        if not numpy.array_equal(got, 3 * values):
            raise ValueError(f"aclnnAdd computed {got.tolist()}, expected {(3 * values).tolist()}")


if __name__ == "__main__":
    main(trial)
