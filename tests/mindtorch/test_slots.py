"""Tensors, storages and nodes are made in C: nothing leaks or crashes; Python makes the same."""

import gc
import os
import subprocess
import sys
import weakref

import pytest

import mindtorch as torch
from mindtorch._tensor import slots
from mindtorch._tensor.slots import NodeSlots, StorageSlots, TensorSlots, fresh, grown, over
from mindtorch._tensor.storage import Storage

built = pytest.mark.skipif(
    type(fresh).__name__ != "builtin_function_or_method",
    reason="this tree was not built",
)


class Step(NodeSlots):
    __slots__ = ("__dict__", "__weakref__")


@pytest.fixture
def part():
    t = torch.arange(6.0)
    return t._geom, t._storage


def test_a_fresh_tensor_has_a_storage_of_its_own(part):
    geom, storage = part
    t = fresh(geom, storage.memory, storage.memory)
    assert type(t) is torch.Tensor
    assert type(t._storage) is Storage
    assert t._storage is not storage
    assert t._storage.memory is storage.memory
    assert (t._geom, t._fn, t._nr, t._base, t._storage.value) == (geom, None, 0, None, 0)
    assert t._storage.views is None
    assert t._array is storage.memory
    assert fresh(geom, storage.memory).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_over_a_storage_keeps_its_base(part):
    geom, storage = part
    base = over(geom, storage)
    view = over(geom, storage, base)
    assert view._storage is storage
    assert view._base is base
    assert base._base is None
    assert view.tolist() == [0, 1, 2, 3, 4, 5]  # the numpy view is made when it is asked for


def test_a_slot_that_is_not_set_is_no_attribute(part):
    node = Step()
    with pytest.raises(AttributeError):
        _ = node.edges
    node = grown(Step, 3, (), (part[0],), None, (), None)
    assert (node.seq, node.edges, node.outs, node.saved) == (3, (), (part[0],), None)
    del node.saved
    with pytest.raises(AttributeError):
        _ = node.saved
    assert fresh(*part)._grad is None


@pytest.mark.parametrize(
    "call",
    [
        lambda g, s: fresh(g), lambda g, s: fresh(g, s, s, s), lambda g, s: over(g),
        lambda g, s: grown(int, 1, (), (), (), (), None), lambda g, s: grown(Step),
        lambda g, s: grown(3, 1, (), (), (), (), None), lambda g, s: slots.bind(int, Storage),
        lambda g, s: slots.bind(torch.Tensor, str), lambda g, s: slots.bind(torch.Tensor),
    ],
)  # fmt: skip
@built
def test_wrong_calls_are_refused(call, part):
    with pytest.raises(TypeError):
        call(*part)


def test_cycles_are_collected(part):
    t = fresh(*part)
    t.own = t
    node = grown(Step, 1, (), (), None, (), None)
    node.edges = ((node, 0),)
    gone = weakref.ref(t), weakref.ref(node)
    del t, node
    gc.collect()
    assert [g() for g in gone] == [None, None]


def test_nothing_is_kept_or_let_go_twice(part):
    geom, storage = part
    base = over(geom, storage)
    watched = (geom, storage, storage.memory, base, torch.Tensor, Storage, Step)

    def counts():
        gc.collect()
        return [sys.getrefcount(w) for w in watched]

    before = counts()
    for _ in range(2000):
        fresh(geom, storage.memory, storage.memory)
        over(geom, storage, base)
        grown(Step, 1, (), (geom,), (), (storage,), None)
    after = counts()
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True)), (before, after)


def test_long_chains_are_let_go(part):
    geom, storage = part
    node = grown(Step, 0, (), (), None, (), None)
    base = over(geom, storage)
    for i in range(200_000):
        node = grown(Step, i, ((node, 0),), (), None, (), None)
        base = over(geom, storage, base)
    del node, base  # far more than the stack holds of calls within calls


def test_subclasses_have_slots_and_places_of_their_own(part):
    class Named(torch.Tensor):
        pass

    t = torch.ones(3).as_subclass(Named)
    t.name = "a"
    assert (t + 1).tolist() == [2, 2, 2]
    assert t.name == "a"
    assert weakref.ref(t)() is t
    assert issubclass(torch.Tensor, TensorSlots)
    assert issubclass(Storage, StorageSlots)


STEP = """
import sys
if {hidden}:
    sys.modules["mindtorch._tensor._slots"] = None
import mindtorch as torch
from mindtorch._tensor import slots
assert (type(slots.fresh).__name__ == "function") == {hidden}
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.arange(12.0).view(3, 4)[:, [0, 1, 2, 3]])[1:].square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@built
def test_a_tree_that_was_not_built_computes_the_same():
    told = [
        subprocess.run(
            [sys.executable, "-c", STEP.format(hidden=hidden)],
            env={**os.environ, "MINDTORCH_NATIVE": "0"}, capture_output=True, text=True, check=True,
        ).stdout
        for hidden in (False, True)
    ]  # fmt: skip
    assert told[0] == told[1]
    assert len(told[0].splitlines()) == 3
