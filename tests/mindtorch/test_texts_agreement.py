"""What programs print of a failed save and of steps of a profiler is torch's."""

import io
import pickle

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
