"""Under functionalize, every mutating op gives what it gives eagerly, gradients included."""

import threading

import pytest

import mindtorch as torch
from mindtorch._backends.registry import registry

CASES = {
    "contiguous view": (lambda b: b.view(6), lambda v: v.add_(1)),
    "strided view": (lambda b: b.t(), lambda v: v.mul_(torch.arange(2.0) + 2)),
    "slice": (lambda b: b[:, 1:], lambda v: v.copy_(torch.tensor([7.0, 8.0]))),
    "step": (lambda b: b[:, ::2], lambda v: v.fill_(3.0)),
    "row": (lambda b: b[1], lambda v: v.zero_()),
    "diagonal": (lambda b: b.diagonal(), lambda v: v.neg_()),
    "view of view": (lambda b: b.t()[1:], lambda v: v[0].mul_(5)),
    "itself": (lambda b: b, lambda v: v.sub_(2, alpha=3)),
    "set item": (lambda b: b, lambda v: v.__setitem__((slice(None), 0), 9.0)),
    "set by index": (lambda b: b, lambda v: v.__setitem__(([0, 1], [2, 0]), 4.0)),
    "relu": (lambda b: b[0], lambda v: v.sub_(2).relu_()),
}  # fmt: skip


def run(view, write):
    leaf = torch.arange(6.0).requires_grad_()
    base = (leaf * 2).view(2, 3)
    write(view(base))
    (base * base).sum().backward()
    return base.tolist(), leaf.grad.tolist(), base._version


@pytest.mark.parametrize("name", CASES)
def test_writes_and_gradients_equal_eager(name):
    expected = run(*CASES[name])
    with torch.functionalize():
        got = run(*CASES[name])
    assert got == expected


def test_out_is_written_back_through_a_view():
    base = torch.zeros(4)
    with torch.functionalize():
        torch.add(torch.ones(2), 1, out=base[1:3])
    assert base.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_functional_op_runs_instead_of_the_mutating_one():
    seen = []
    registry.register("mul", "cpu", lambda a, b: seen.append("mul") or torch.add(a, b))
    try:
        t = torch.ones(2)
        with torch.functionalize():
            t.mul_(torch.ones(2))
    finally:
        registry.unregister("mul", "cpu")
    assert seen == ["mul"]
    assert t.tolist() == [2.0, 2.0]


def test_meta_writeback_changes_no_metadata():
    base = torch.ones(4, device="meta")
    view = base.view(2, 2).t()
    with torch.functionalize():
        view.add_(1)
    assert (view.shape, view.stride(), base.shape) == ((2, 2), (1, 2), (4,))
    assert base._version == 1


def test_leaf_errors_are_those_of_eager():
    t = torch.ones(2, requires_grad=True)
    with torch.functionalize(), pytest.raises(RuntimeError, match="a leaf Variable that requires"):
        t.add_(1)


def test_shape_errors_are_those_of_eager():
    with torch.functionalize(), pytest.raises(RuntimeError, match="doesn't match the broadcast"):
        torch.ones(3).add_(torch.ones(2, 3))


def test_context_is_per_thread():
    seen = []

    def other():
        t = torch.ones(2)
        t.add_(1)
        seen.append(torch._autograd.grad_mode.LOCAL.functionalize)

    with torch.functionalize():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        inside = torch._autograd.grad_mode.LOCAL.functionalize
    assert seen == [0]
    assert inside == 1


def test_contexts_nest_and_end():
    with torch.functionalize(), torch.functionalize():
        torch.ones(2).add_(1)
    assert torch._autograd.grad_mode.LOCAL.functionalize == 0
    assert torch._autograd.grad_mode.MODES.active == 0
