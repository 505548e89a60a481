"""Graphs, views and saved tensors are freed by reference counts alone: no cycles, no growth."""

import gc
import weakref

import pytest

import mindtorch as torch


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def step(x):
    y = (x * 2).exp() + x.relu()
    z = y.view(2, 2).t()
    z = z @ z
    return (z * z).sum()


@pytest.mark.usefixtures("no_collector")
def test_graph_dies_with_its_result():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    held = weakref.ref(y)
    node = weakref.ref(y.grad_fn)
    loss = (y * y).sum()
    del y
    assert held() is not None
    loss.backward()
    del loss
    assert held() is None
    assert node() is None


@pytest.mark.usefixtures("no_collector")
def test_forward_without_backward_leaves_nothing():
    x = torch.ones(4, requires_grad=True)
    node = weakref.ref(step(x).grad_fn)
    assert node() is None


@pytest.mark.usefixtures("no_collector")
def test_leaf_dies_after_backward():
    x = torch.ones(4, requires_grad=True)
    held = weakref.ref(x)
    step(x).backward()
    del x
    assert held() is None


@pytest.mark.usefixtures("no_collector")
def test_objects_do_not_grow_over_steps():
    x = torch.ones(4, requires_grad=True)

    def run(n):
        for _ in range(n):
            x.grad = None
            step(x).backward()
            x.detach()[1:].add_(0)
        return len(gc.get_objects())

    run(20)
    before = run(5)
    assert run(300) <= before + 5


@pytest.mark.usefixtures("no_collector")
def test_in_place_through_views_leaves_nothing():
    def run():
        x = torch.ones(4, requires_grad=True)
        y = x * 1
        v = y[1:]
        v.mul_(2)
        (y * y).sum().backward()
        return weakref.ref(y), weakref.ref(v), weakref.ref(x)

    assert [r() for r in run()] == [None, None, None]


def test_views_of_a_long_lived_base_are_forgotten():
    base = torch.ones(10)
    for _ in range(1000):
        base[1:]
    assert len(base._storage.views) < 130


def test_saved_tensors_are_freed_after_backward():
    x = torch.ones(4, requires_grad=True)
    a = x * 2
    b = a * a
    storage = weakref.ref(a)
    loss = b.sum()
    del a
    loss.backward()
    assert storage() is None
    assert b.grad_fn.saved is None


def test_gradient_taken_over_is_not_held_by_anyone_else():
    x = torch.ones(4, requires_grad=True)
    y = torch.ones(4, requires_grad=True)
    (x * y).sum().backward()
    x.grad.fill_(7)
    assert y.grad.tolist() == [1.0] * 4
    kept = []
    z = torch.ones(4, requires_grad=True)
    w = z * 1
    w.register_hook(kept.append)
    w.sum().backward()
    z.grad.fill_(9)
    assert kept[0].tolist() == [1.0] * 4
