"""Calls like an earlier one: what is found again, what is not, and what they keep alive."""

import copy
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.call.arrays import DeviceTensor
from aclnn_bindings.call.operator import BoundOp
from aclnn_bindings.errors import ArgumentError, ClosedHandleError
from aclnn_bindings.runtime.status import AclError


@contextmanager
def only_repeated() -> Iterator[None]:
    """Whatever is not found again is an error."""

    def refuse(self: BoundOp, /, *args: object, **kwargs: object) -> None:
        raise AssertionError(f"{self.name}: not found again")

    general = BoundOp._call
    BoundOp._call = refuse  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        BoundOp._call = general  # type: ignore[method-assign]


def operands(stub: Stub) -> tuple[DeviceTensor, DeviceTensor]:
    return stub.cann.tensor(np.full(2, 2.0, np.float32)), stub.cann.empty((2,))


def test_every_spelling_of_a_call_is_found_again(stub: Stub) -> None:
    a, out = operands(stub)
    add = stub.cann.ops.aclnnAdd
    add(a, a, 3.0, out)
    with only_repeated():
        add(a, a, 3.0, out)
        add(self=a, other=a, alpha=3.0, out=out)
        add(out=out, alpha=3.0, other=a, self=a)
        add(a, out=out, alpha=3.0, other=a)
        add(a, a, 3.0, out, stream=None)
        add(
            **{"".join(["sel", "f"]): a}, other=a, alpha=3.0, out=out
        )  # a name that is not interned
    assert out.numpy().tolist() == [8.0, 9.0]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {"self": 1, "other": 1, "alpha": 1.0}),
        ((), {"self": 1, "other": 1, "alpha": 1.0, "result": 2}),
        ((), {"self": 1, "other": 1, "alpha": 1.0, "out": 2, "more": 3}),
        ((), {"self": 1, "other": 1, "alpha": 1.0, "out": 2, "stream": 3}),
        ((1,), {"self": 1, "alpha": 1.0, "out": 2}),
        ((1, 1, 1.0, 2, 2), {}),
        ((1, 1, 1.0, 2), {"out": 2}),
        ((1, 1, 1.0), {"stream": None}),
    ],
)
def test_what_does_not_fit_is_refused_after_calls_that_do(
    stub: Stub, args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    a, out = operands(stub)
    stub.cann.ops.aclnnAdd(a, a, 1.0, out)
    values = {1: a, 2: out}
    taken = [values.get(x, x) if type(x) is int else x for x in args]
    named = {k: values.get(x, x) if type(x) is int else x for k, x in kwargs.items()}
    with pytest.raises(ArgumentError, match="aclnnAdd"):
        stub.cann.ops.aclnnAdd(*taken, **named)


def test_every_kind_of_value_is_found_again_and_told_apart(stub: Stub) -> None:
    cann = stub.cann
    a, out = cann.tensor(np.full(1, 5.0, np.float32)), cann.empty((20,))
    values: dict[str, object] = {
        "self": a, "tensors": [a, a], "scalars": (1, 2.0, True), "ints": [3, -4],
        "bools": (False, True), "floats": [0.5], "text": "hello", "flag": True, "i8": -8,
        "i32": -32, "i64": -(1 << 62), "u32": 32, "u64": 64, "f": 1.25, "d": -2.5,
        "dtype": "FLOAT16", "maskOptional": None, "out": out,
    }  # fmt: skip
    cann.ops.aclnnStubKinds(**values)
    first = out.numpy()
    with only_repeated():
        cann.ops.aclnnStubKinds(**{**values, "ints": (3, -4), "text": "".join(["hel", "lo"])})
        np.testing.assert_array_equal(out.numpy(), first)  # what is not written may be NaN
        for name, other in [
            ("tensors", [a]), ("scalars", (1, 2.0)), ("ints", [3]), ("ints", [3, -5]),
            ("bools", (True, True)), ("floats", [0.25]), ("text", "hellp"), ("text", "x" * 65),
            ("flag", False), ("u64", 65), ("d", 2.5), ("dtype", "FLOAT"), ("ints", [1 << 80]),
            ("ints", [[3], -4]), ("text", "\udc80"), ("d", np.float64(-2.5)), ("scalars", "12"),
        ]:  # fmt: skip
            with pytest.raises(AssertionError, match="not found again"):
                cann.ops.aclnnStubKinds(**{**values, name: other})


def test_members_of_a_list_are_not_taken_for_what_follows_it(stub: Stub) -> None:
    op = stub.cann.ops.aclnnAdd
    a, _ = operands(stub)
    keys = {
        op._key(a, *values) for values in ([[1], 2], [[1, 2]], [1, 2], [[], 1, 2], [[1, 2], []])
    }
    assert None not in keys
    assert len(keys) == 5
    assert op._key(1, 2.0) is None, "without a tensor nothing says on which device"


def test_each_call_has_its_own_addresses_and_its_own_operator(stub: Stub) -> None:
    cann = stub.cann
    outs = [cann.empty((2,)) for _ in range(3)]
    a, b = (cann.tensor(np.full(2, value, np.float32)) for value in (2.0, 5.0))
    for out in outs:
        cann.ops.aclnnAdd(a, a, 1.0, out)
    a.buffer.write(np.full(2, 7.0, np.float32))
    with only_repeated():
        for out in outs:
            cann.ops.aclnnAdd(a, a, 1.0, out)
        with pytest.raises(AssertionError):
            cann.ops.aclnnStubNoop(a, a, 1.0, outs[0])
    assert [out.numpy()[0] for out in outs] == [14.0] * 3
    a.spec, kept = b.spec, a.spec  # another view: not the call that is known
    cann.ops.aclnnAdd(a, a, 1.0, outs[0])
    a.spec = kept
    a.buffer = b.buffer
    cann.ops.aclnnAdd(a, a, 1.0, outs[0])
    assert outs[0].numpy()[0] == 10.0


def test_a_repeated_call_runs_where_it_should(stub: Stub) -> None:
    cann = stub.cann
    a, out = operands(stub)
    add, default = cann.ops.aclnnAdd, cann.runtime.current_stream()
    side = cann.runtime.stream()
    add(a, a, 1.0, out)
    with only_repeated():
        add(a, a, 1.0, out, stream=side)
        assert stub.get("last_stream") == side.handle
        add(a, a, 1.0, out)
        assert stub.get("last_stream") == default.handle
        with side.use():
            add(a, a, 1.0, out)
            assert stub.get("last_stream") == side.handle
            add(a, a, 1.0, out, stream=default)
            assert stub.get("last_stream") == default.handle
        add(a, a, 1.0, out)
        assert stub.get("last_stream") == default.handle
    side.close()
    with pytest.raises(ClosedHandleError, match="stream on device 0"):
        add(a, a, 1.0, out, stream=side)
    with pytest.raises(ArgumentError, match="expected a Stream"):
        add(a, a, 1.0, out, stream=cann.runtime.device())


def test_a_repeated_call_runs_on_its_tensors_device(stub: Stub) -> None:
    runtime = stub.cann.runtime
    other = runtime.device(3)
    tensors = [stub.cann.empty((2,), stream=other.default_stream) for _ in range(2)]
    for _ in range(2):
        stub.cann.ops.aclnnAdd(tensors[0], tensors[0], 1.0, tensors[1])
        assert stub.get("last_stream") == other.default_stream.handle
    side = other.stream()
    made_there = stub.cann.empty((2,), stream=side)
    for _ in range(2):
        stub.cann.ops.aclnnAdd(made_there, made_there, 1.0, tensors[1])
        assert stub.get("last_stream") == other.default_stream.handle


@pytest.mark.parametrize("phase", ["fail_one", "fail_two"])
def test_a_repeated_call_that_fails_says_everything(stub: Stub, phase: str) -> None:
    a, out = operands(stub)
    stub.cann.ops.aclnnAdd(a, a, 1.0, out)
    stub.set(phase, 161002)
    with only_repeated(), pytest.raises(AclError) as caught:
        stub.cann.ops.aclnnAdd(a, a, 1.0, out)
    assert (caught.value.code, caught.value.shapes) == (161002, ((2,), (2,), (2,)))
    stub.set(phase, 0)
    with only_repeated():
        stub.cann.ops.aclnnAdd(a, a, 1.0, out)
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}


def test_a_tensor_that_is_passed_as_a_pointer_is_not_mistaken_for_an_operand(stub: Stub) -> None:
    a, out = operands(stub)
    before = len(stub.cann.plans.repeated)
    op = stub.cann.ops.aclnnAdd
    plan = op.plan(a.spec, a.spec, 1.0, out.spec)
    op._remember((a, a, a, out), plan)
    assert len(stub.cann.plans.repeated) == before
    op._remember((a, a, 1.0, out), plan)
    assert len(stub.cann.plans.repeated) == before + 1


def test_repeated_calls_keep_nothing_of_what_they_are_given(stub: Stub) -> None:
    a, out = operands(stub)
    add, named = stub.cann.ops.aclnnAdd, {"self": a, "other": a, "alpha": 1.5, "out": out}
    add(**named)
    things = (a, out, a.buffer, a.spec, add, named["alpha"], None)
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(1000):
        add(**named)
        add(a, a, 1.5, out, stream=None)
    assert all(abs(sys.getrefcount(t) - n) < 50 for t, n in zip(things, before, strict=True))


def test_closing_lets_plans_and_views_go(stub: Stub) -> None:
    a, out = operands(stub)
    for alpha in (1.0, 2.0):
        stub.cann.ops.aclnnAdd(a, a, alpha, out)
    assert len(stub.cann.plans.repeated) == 2
    stub.cann.close()
    gc.collect()
    assert (stub.cann.plans.repeated, stub.live("scalar")) == ({}, 0)


def test_threads_repeat_calls_while_plans_are_dropped(stub: Stub) -> None:
    cann, errors = stub.cann, list[BaseException]()
    a, out = operands(stub)
    cann.plans.limit = 8

    def work(first: int) -> None:
        try:
            for k in range(600):
                cann.ops.aclnnAdd(self=a, other=a, alpha=float((first + k) % 7), out=out)
                if k % 100 == first:
                    cann.plans.clear()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}


def test_a_copy_of_what_owns_device_memory_is_refused(stub: Stub) -> None:
    a, _ = operands(stub)
    for thing in (a, a.buffer):
        for copied in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=type(thing).__name__):
                copied(thing)
    assert a.numpy().tolist() == [2.0, 2.0]
