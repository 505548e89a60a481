"""What programs that others might have written have found, each as small as it gets."""

import contextlib
import io

import pytest
from agreement import agree


def test_an_empty_file_ends_before_it_begins():
    agree(lambda t: t.load(io.BytesIO(b"")), text=False)


def test_a_prefix_is_taken_off_the_keys_of_a_state():
    def run(t):
        state = t.nn.Sequential(t.nn.Linear(1, 1)).state_dict(prefix="module.")
        plain = {"module.a": 1, "b": 2, "module.module.c": 3}
        for states in (state, plain):
            t.nn.modules.utils.consume_prefix_in_state_dict_if_present(states, "module.")
        return list(state), sorted(state._metadata), plain

    agree(run)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), ([1.0, 0.0], [0.0, 1.0])], ids=str)
def test_bounds_of_a_uniform_are_held_to_each_other(low, high):
    agree(lambda t: t.distributions.Uniform(t.tensor(low), t.tensor(high)))


def test_a_uniform_tells_its_constraints():
    agree(lambda t: repr(t.distributions.Uniform(0.0, 1.0).arg_constraints))


def test_an_expanded_uniform_keeps_its_bounds():
    def run(t):
        wide = t.distributions.Uniform(t.tensor([0.0, 1.0]), t.tensor([2.0, 3.0])).expand((2, 2))
        return wide.low, wide.mean, wide.log_prob(t.ones(2, 2))

    agree(run)


def test_an_exit_stack_takes_a_device():
    def run(t):
        with contextlib.ExitStack() as stack:
            shown = stack.enter_context(t.device("meta"))
            made = t.ones(2).device
        return str(shown), str(made), str(t.ones(2).device)

    agree(run)
