"""Tensors of cpu in memory that processes share, and on their way through queues."""

import pytest

import mindtorch as mt
import mindtorch.multiprocessing as mp

torch = pytest.importorskip("torch", reason="torch is the oracle")


def _write(tensor, value):
    tensor += value


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_process_writes_into_the_memory_of_its_parent(start):
    tensor = mt.zeros(2, 3)
    view = tensor[1]
    assert tensor.share_memory_() is tensor
    process = mp.get_context(start).Process(target=_write, args=(view, 4))
    process.start()
    process.join()
    assert tensor.tolist() == [[0] * 3, [4] * 3]


def test_a_module_is_shared_and_trained_in_place():
    module = mt.nn.Linear(2, 2)
    assert module.share_memory() is module
    assert all(p.is_shared() and p.requires_grad for p in module.parameters())
    before = module.weight.tolist()
    with mt.no_grad():
        module.weight.mul_(2)
    assert module.weight.tolist() == [[2 * v for v in row] for row in before]


def _facts(library):
    """What is shared, before and after: of a tensor, its view, copies, storages."""
    base = library.arange(6.0)
    view = base[2:4]
    facts = [base.is_shared(), base.untyped_storage().is_shared(), library.ones(0).is_shared()]
    view.share_memory_()
    base.add_(1)
    return [
        *facts, base.is_shared(), view.is_shared(), view.tolist(), base.clone().is_shared(),
        base.untyped_storage().is_shared(), base.reshape(2, 3).t().is_shared(),
        library.from_numpy(base.numpy()).is_shared(), base.numpy().tolist(),
        library.ones(2).untyped_storage().share_memory_().is_shared(),
        sorted(library.multiprocessing.get_all_sharing_strategies()),
        library.multiprocessing.get_sharing_strategy(),
    ]  # fmt: skip


def test_sharing_is_seen_as_in_torch():
    assert _facts(mt) == _facts(torch)


def test_what_a_queue_carries_has_the_sender_s_memory():
    queue = mp.get_context("fork").SimpleQueue()
    leaf = mt.nn.Parameter(mt.ones(3))
    sent = {"w": mt.arange(6).view(2, 3)[:, 1:], "p": leaf, "e": mt.ones(0, 2), "b": mt.ones(2) > 0}
    queue.put(sent)
    received = queue.get()
    for name, tensor in received.items():
        assert tensor.tolist() == sent[name].tolist()
        assert tensor.dtype == sent[name].dtype
    assert isinstance(received["p"], mt.nn.Parameter)
    assert received["p"].requires_grad
    received["w"][0, 0] = 7
    assert sent["w"][0, 0] == 7
    assert received["w"].is_shared()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        queue.put(leaf * 2)
