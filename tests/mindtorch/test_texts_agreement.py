"""What programs print of failed calls, steps, sizes and checkpoints is torch's."""

import io
import pickle

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def text_of(call):
    with pytest.raises(pickle.PicklingError) as caught:
        call()
    return str(caught.value)


def test_classes_that_no_module_has_cannot_be_saved():
    hidden = type("Hidden", (), {"__module__": __name__})()
    texts = {text_of(lambda t=t: t.save(hidden, io.BytesIO())) for t in (mindtorch, torch)}
    assert len(texts) == 1


def steps_at_which_traces_are_ready(t):
    steps = []
    plan = t.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    kinds = [t.profiler.ProfilerActivity.CPU]
    ready = lambda p: steps.append(p.step_num)  # noqa: E731
    with t.profiler.profile(activities=kinds, schedule=plan, on_trace_ready=ready) as p:
        for _ in range(5):
            t.ones(2).sum()
            p.step()
    return steps


def test_traces_are_ready_in_the_step_after():
    ours, theirs = map(steps_at_which_traces_are_ready, (mindtorch, torch))
    assert ours == theirs


def test_sizes_come_apart_in_trees():
    seen = []
    for t in (mindtorch, torch):
        tree = t.utils._pytree
        seen.append(
            (tree.tree_map(lambda n: n + 1, [t.Size([1, 2])]), tree.tree_leaves(t.Size([3])))
        )
    assert seen[0] == seen[1]
    assert type(seen[0][0][0]) is tuple


def test_reentrant_checkpoints_are_one_node():
    names = []
    for t in (mindtorch, torch):
        x = t.ones(2, requires_grad=True)
        y = t.utils.checkpoint.checkpoint(lambda x: (x * 2).sin() * 3, x, use_reentrant=True)
        y.sum().backward()
        names.append((type(y.grad_fn).__name__, x.grad.tolist()))
    assert names[0] == names[1]


def test_ragged_lists_of_arrays_are_refused_alike():
    rows = [np.ones(2), np.ones(3)]
    texts = []
    for t in (mindtorch, torch):
        with pytest.raises(ValueError, match="expected sequence") as caught:
            t.tensor(rows)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
