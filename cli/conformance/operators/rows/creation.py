"""Tensors filled with constants and sequences."""

from __future__ import annotations

import numpy as np

from ....judge.precision import Array
from ..spec import const, spec, t, take
from ._defaults import EXACT


@spec("aclnnInplaceFillTensor", "selfRef:selfRef", **EXACT, sparse=True,
      samples=[take(selfRef=t(5, 7), value=const([2.5], "float32"))])  # fmt: skip
def fill_tensor(selfRef: Array, value: Array) -> Array:
    return np.full_like(selfRef, value.reshape(()))


@spec(
    "aclnnOneHot",
    "out:onValue",
    constant="axis",
    **EXACT,
    sparse=True,
    samples=[
        take(
            self=const([3, 0, 1, 2]), numClasses=5, onValue=const([1]), offValue=const([0]), axis=-1
        ),
        take(
            self=const([[3, 0], [1, 4]]),
            numClasses=5,
            onValue=const([7]),
            offValue=const([-2]),
            axis=-1,
        ),
    ],
)
def one_hot(self: Array, numClasses: int, onValue: Array, offValue: Array, axis: int) -> Array:
    hit = self[..., None] == np.arange(numClasses)
    return np.where(hit, onValue.reshape(()), offValue.reshape(()))


spec("aclnnRange", "out:float32", **{**EXACT, "tolerance": "composite"}, samples=[
    take(start=1.0, end=7.0, step=1.5), take(start=5.0, end=-1.0, step=-2.0)])(
    lambda start, end, step: np.arange(start, end + np.sign(step) * 1e-9, step))  # fmt: skip
spec("aclnnArange", "out:float32", **{**EXACT, "tolerance": "composite"}, samples=[
    take(start=1.0, end=7.0, step=1.5), take(start=5.0, end=-1.0, step=-2.0)])(
    lambda start, end, step: np.arange(start, end, step))  # fmt: skip
spec("aclnnLogSpace", "result:float32", **{**EXACT, "tolerance": "composite"}, samples=[
    take(start=-1.0, end=2.0, steps=n, base=b) for n, b in ((7, 10.0), (5, 2.0))])(
    lambda start, end, steps, base: base ** np.linspace(start, end, steps))  # fmt: skip
