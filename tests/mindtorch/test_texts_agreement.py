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


WRONG = {
    "seed": lambda t: t.manual_seed(2**70),
    "seed of a generator": lambda t: t.Generator().manual_seed(-(2**64)),
    "device": lambda t: t.ones(1).to("float99"),
    "device index": lambda t: t.device("cpu0"),
    "exponential": lambda t: t.ones(2).exponential_(-1.0),
    "exponential of a fraction": lambda t: t.ones(2).exponential_(-1.5),
    "cauchy": lambda t: t.ones(2).cauchy_(0, -1),
    "log normal": lambda t: t.ones(2).log_normal_(0, -1.0),
    "uniform": lambda t: t.ones(2).uniform_(3.0, 1.0),
    "take along": lambda t: t.take_along_dim(t.ones(2, 2), t.ones(2, 2), 1),
    "take along by int32": lambda t: t.take_along_dim(
        t.ones(2, 2), t.ones(2, 2, dtype=t.int32), 1),
    "dlpack": lambda t: t.from_dlpack([1]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_refused_in_torchs_words(name):
    refusals = []
    for t in (mindtorch, torch):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            WRONG[name](t)
        refusals.append((caught.type.__name__, str(caught.value)))
    assert refusals[0] == refusals[1]


def test_scalers_and_gains_answer_as_torchs():
    answers = []
    for t in (mindtorch, torch):
        scaler = t.amp.GradScaler("cpu", growth_interval=7)
        scaler.set_growth_factor(4.0)
        scaler.set_backoff_factor(0.25)
        known = (
            scaler.get_growth_factor(),
            scaler.get_backoff_factor(),
            scaler.get_growth_interval(),
        )
        names = ["linear", "conv1d", "sigmoid", "tanh", "relu", "selu"]
        answers.append((known, [repr(t.nn.init.calculate_gain(n)) for n in names]))
    assert answers[0] == answers[1]
