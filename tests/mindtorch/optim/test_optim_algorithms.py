"""Every optimizer makes torch's steps and keeps torch's state."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from optim_pairs import compare, run, torch

import mindtorch

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True, "eps": 1e-3}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.1}),
    ("ASGD", {"lr": 0.05, "t0": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
]
IDS = [f"{name} {kwargs}" for name, kwargs in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_steps_are_torchs(case: tuple[str, dict[str, Any]]) -> None:
    name, kwargs = case
    compare(lambda optim, values: getattr(optim, name)(values, **kwargs), steps=9)


@pytest.mark.parametrize("case", [*CASES, ("LBFGS", {"max_iter": 1}), ("Muon", {})], ids=str)
def test_complex_parameters_step_by_their_parts(case: tuple[str, dict[str, Any]]) -> None:
    name, kwargs = case

    def steps(library: Any) -> Any:
        p = library.tensor([[1 + 2j, -0.7j], [0.3, 2 - 1j]], requires_grad=True)
        optimizer = getattr(library.optim, name)([p], **kwargs)

        def closure() -> Any:
            optimizer.zero_grad()
            value = ((p * (1 - 0.5j)).abs() ** 2).sum() + p.imag.sum()
            value.backward()
            return value

        for _ in range(4):
            optimizer.step(closure)
        state = optimizer.state_dict()["state"].get(0, {})
        shown = {k: v.tolist() for k, v in state.items() if hasattr(v, "is_complex")}
        return p.tolist(), list(state), shown

    try:
        expected = steps(torch)
    except (RuntimeError, ValueError) as error:
        with pytest.raises(type(error), match=str(error)):
            steps(mindtorch)
        return
    found = steps(mindtorch)
    assert found[1] == expected[1]
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5, atol=1e-6)
    for key, value in expected[2].items():
        np.testing.assert_allclose(found[2][key], value, rtol=1e-4, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_reaches_torchs_minimum(search: str | None) -> None:
    def make(optim: Any, values: Any) -> Any:
        return optim.LBFGS(values, lr=0.5 if search is None else 1, line_search_fn=search)

    expected, _, _ = run(torch, make, 4)
    found, _, _ = run(mindtorch, make, 4)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_groups_have_their_own_settings() -> None:
    def make(optim: Any, values: Any) -> Any:
        groups = [{"params": [values[0]], "lr": 0.3}, {"params": values[1], "weight_decay": 0.5}]
        return optim.SGD(groups, lr=0.01, momentum=0.9)

    compare(make)


def test_a_loaded_state_goes_on_where_it_was_saved() -> None:
    def adam(optim: Any, values: Any) -> Any:
        return optim.AdamW(values, lr=0.1)

    straight, _, _ = run(mindtorch, adam, 6)
    half, first, _ = run(mindtorch, adam, 3)
    saved = first.state_dict()

    def resumed(optim: Any, values: Any) -> Any:
        for value, kept in zip(values, half, strict=True):
            with mindtorch.no_grad():
                value.copy_(mindtorch.from_numpy(kept.copy()))
        made = adam(optim, values)
        made.load_state_dict(saved)
        return made

    found, _, _ = run(mindtorch, resumed, 3)
    for a, b in zip(found, straight, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_torchs_state_dict_loads() -> None:
    def adam(optim: Any, values: Any) -> Any:
        return optim.Adam(values, lr=0.1)

    _, theirs, _ = run(torch, adam, 3)
    _, mine, _ = run(mindtorch, adam, 1)
    saved = theirs.state_dict()
    copied = {
        key: {name: mindtorch.from_numpy(t.numpy().copy()) for name, t in state.items()}
        for key, state in saved["state"].items()
    }
    mine.load_state_dict({"state": copied, "param_groups": saved["param_groups"]})
    assert float(mine.state_dict()["state"][0]["step"]) == 3.0


def _step_by_groups_of(t: Any, p: Any, saved: Any, stepped: Any) -> None:
    """Loads what another kind of optimizer saved: options that it has not are missed."""
    p.grad = t.ones(2)
    optimizer = stepped([p])
    optimizer.load_state_dict(saved([p]).state_dict())
    optimizer.step()


REFUSED: list[Any] = [
    lambda t, p: t.optim.SGD([]),
    lambda t, p: t.optim.SGD(p),
    lambda t, p: t.optim.SGD([p], lr=-1),
    lambda t, p: t.optim.SGD([3]),
    lambda t, p: t.optim.SGD([p * 2]),
    lambda t, p: t.optim.SGD([{"params": [p]}, {"params": [p]}]),
    lambda t, p: t.optim.SGD([p], momentum=-1),
    lambda t, p: t.optim.SGD([p], nesterov=True),
    lambda t, p: t.optim.SGD([p], weight_decay=-1),
    lambda t, p: t.optim.SGD([{"params": {p}}]),
    lambda t, p: t.optim.SGD([p]).add_param_group(3),
    lambda t, p: t.optim.Adam([p], betas=(1.0, 2.0)),
    lambda t, p: t.optim.Adam([p], eps=-1),
    lambda t, p: t.optim.Adamax([p], weight_decay=-1),
    lambda t, p: t.optim.RMSprop([p], alpha=-1),
    lambda t, p: t.optim.Adagrad([p], lr_decay=-1),
    lambda t, p: t.optim.Rprop([p], etas=(2, 3)),
    lambda t, p: _step_by_groups_of(t, p, t.optim.Adam, t.optim.SGD),
    lambda t, p: _step_by_groups_of(t, p, t.optim.SGD, t.optim.Adam),
    lambda t, p: t.optim.SGD([p]).load_state_dict({"param_groups": [], "state": {}}),
    lambda t, p: t.optim.SGD([p]).load_state_dict(
        {"param_groups": [{"params": [1, 2]}], "state": {}}
    ),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusal_has_torchs_type_and_text(i: int) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - torch decides the class
        REFUSED[i](torch, torch.nn.Parameter(torch.ones(2)))
    with pytest.raises(type(expected.value)) as found:
        REFUSED[i](mindtorch, mindtorch.nn.Parameter(mindtorch.ones(2)))
    assert str(found.value) == str(expected.value)


def test_repr_is_torchs() -> None:
    mine = mindtorch.optim.AdamW([mindtorch.nn.Parameter(mindtorch.ones(2))], lr=0.5)
    theirs = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], lr=0.5)
    assert repr(mine) == repr(theirs)


def test_hooks_run_around_the_step_in_order() -> None:
    p = mindtorch.nn.Parameter(mindtorch.ones(2))
    optimizer = mindtorch.optim.SGD([p], lr=0.1)
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))
    optimizer.register_state_dict_post_hook(lambda o, d: seen.append("state"))
    p.grad = mindtorch.ones(2)
    optimizer.step()
    optimizer.state_dict()
    assert seen == ["pre", "post", "state"]


def test_zero_grad_drops_or_zeroes() -> None:
    p = mindtorch.nn.Parameter(mindtorch.ones(2))
    optimizer = mindtorch.optim.SGD([p])
    p.grad = mindtorch.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_named_parameters_keep_their_names() -> None:
    model = mindtorch.nn.Linear(2, 3)
    optimizer = mindtorch.optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_a_subclass_with_its_own_step_gets_hooks() -> None:
    class Plain(mindtorch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 1.0})

        def step(self, closure: Any = None) -> None:
            with mindtorch.no_grad():
                for p in self.param_groups[0]["params"]:
                    p.sub_(p.grad)

    p = mindtorch.nn.Parameter(mindtorch.ones(2))
    p.grad = mindtorch.ones(2)
    optimizer = Plain([p])
    seen: list[int] = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert seen == [1]
    assert p.tolist() == [0.0, 0.0]


def test_averaged_model_holds_the_mean() -> None:
    model = mindtorch.nn.Linear(1, 1, bias=False)
    averaged = mindtorch.optim.swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        mindtorch.nn.init.constant_(model.weight, value)
        averaged.update_parameters(model)
    assert averaged.module.weight.tolist() == [[3.0]]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adafactor"])
def test_the_state_of_a_parameter_is_made_whole_or_not_at_all(name, monkeypatch):
    """As a Ctrl-C in the first step leaves it."""
    parameter = mindtorch.nn.Parameter(mindtorch.ones(2, 2))
    parameter.grad = mindtorch.ones(2, 2)
    optimizer = getattr(mindtorch.optim, name)([parameter])
    modules = [m for n, m in sys.modules.items() if n.startswith("mindtorch.optim.")]

    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for module in modules:
            if hasattr(module, "zeros"):
                patch.setattr(module, "zeros", interrupted)
        patch.setattr(mindtorch.Tensor, "new_zeros", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
    assert not optimizer.state[parameter]
    optimizer.step()


@pytest.mark.parametrize("kwargs", [{}, {"max_iter": 3, "max_eval": 2}], ids=str)
def test_wolfe_searches_take_torchs_points(kwargs: dict[str, Any]) -> None:
    def run_of(library: Any) -> Any:
        x = library.tensor([-1.2, 1.0, 0.3], requires_grad=True)
        optimizer = library.optim.LBFGS([x], line_search_fn="strong_wolfe", **kwargs)
        points = []

        def closure() -> Any:
            points.append(x.tolist())
            optimizer.zero_grad()
            curve = x[1:] - x[:-1] * x[:-1]
            loss = (curve * curve * 100).sum() + ((1 - x) * (1 - x)).sum()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return points

    assert run_of(mindtorch) == run_of(torch)


def test_steps_of_lists_and_old_states_are_those_of_torch() -> None:
    def run_of(t: Any) -> list[Any]:

        adam = importlib.import_module(f"{t.__name__}.optim.adam").adam
        sgd = importlib.import_module(f"{t.__name__}.optim.sgd").sgd
        lists = [[t.arange(3.0)], [t.ones(3)], [t.zeros(3)], [t.zeros(3)], [t.zeros(3)]]
        options = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "eps": 1e-8, "weight_decay": 0.1}
        adam(*lists, [t.tensor(1.0)], amsgrad=True, maximize=True, **options)
        momenta, p = [None], t.ones(3)
        sgd([p], [t.arange(3.0)], momenta, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0,
            nesterov=True, maximize=False)  # fmt: skip
        results: list[Any] = [[x.tolist() for x in values] for values in lists]
        results += [p.tolist(), momenta[0].tolist()]
        try:
            adam(*lists, [0], amsgrad=True, maximize=True, **options)
        except RuntimeError as error:
            results.append(str(error))
        own = type("Own", (t.optim.Optimizer,), {})([t.ones(2)], {"lr": 1.0})
        own.load_state_dict(own.state_dict())
        own.load_state_dict(own.state_dict())
        for optimizer in (own, t.optim.SGD([t.ones(2)]), t.optim.RMSprop([t.ones(2)])):
            state = optimizer.state_dict()
            state["param_groups"][0] = {"params": [0], "lr": 5.0}
            optimizer.load_state_dict(state)
            results += [repr(optimizer), optimizer.defaults]
        return results

    assert str(run_of(mindtorch)) == str(run_of(torch))


STEPS_OF_LISTS = {
    "adadelta": ("square acc step", {"lr": 0.1, "rho": 0.9, "maximize": False}),
    "adagrad": ("sum step", {"lr": 0.1, "lr_decay": 0.1, "maximize": True}),
    "adamax": ("mean inf step", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "maximize": True}),
    "asgd": ("mean step step step", {"lr": 0.1, "lambd": 1e-3, "t0": 1, "alpha": 0.7}),
    "nadam": ("mean square step step", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99,
                                        "momentum_decay": 4e-3, "decoupled_weight_decay": True}),
    "radam": ("mean square step", {"lr": 0.1, "beta1": 0.9, "beta2": 0.99}),
    "rmsprop": ("square mean velocity step", {"lr": 0.1, "alpha": 0.9, "momentum": 0.5,
                                              "centered": True}),
    "rprop": ("prev size step", {"step_size_min": 1e-3, "step_size_max": 10.0, "etaminus": 0.5,
                                 "etaplus": 1.2}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS_OF_LISTS)
def test_every_step_of_lists_is_that_of_torch(name: str) -> None:
    states, options = STEPS_OF_LISTS[name]
    if name != "rprop":
        options = {"weight_decay": 0.1, **options}
    if name not in ("asgd", "rprop"):
        options = {"eps": 1e-6, **options}

    def run_of(t: Any) -> list[Any]:
        function = getattr(importlib.import_module(f"{t.__name__}.optim.{name}"), name)
        p, grad = t.arange(3.0) + 1, t.tensor([0.1, -0.2, 0.3])
        lists = [[t.tensor(1.0) if s == "step" else t.full((3,), 0.2)] for s in states.split()]
        for _ in range(3):
            function([p], [grad], *lists, foreach=False, **options)
        found = [p.tolist(), *(values[0].tolist() for values in lists)]
        if name != "asgd":  # torch asks there where it is compiled only
            with pytest.raises(RuntimeError, match="`state_steps` argument must contain"):
                function([p], [grad], *lists[:-1], [0], foreach=False, **options)
        return found

    for ours, theirs in zip(run_of(mindtorch), run_of(torch), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)


DIFFERENTIABLE = [
    ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {}),
    ("Adagrad", {}), ("Adadelta", {}), ("ASGD", {}), ("RMSprop", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), DIFFERENTIABLE, ids=[n for n, _ in DIFFERENTIABLE])
def test_gradients_go_through_steps(name: str, options: dict[str, Any]) -> None:
    def gradients(t: Any) -> list[Any]:
        start = t.linspace(0.5, 2, 4, dtype=t.float64).requires_grad_()
        grad = t.linspace(-1, 1.5, 4, dtype=t.float64).requires_grad_()
        p = start.clone()
        stepper = getattr(t.optim, name)([p], lr=0.1, differentiable=True, **options)
        for factor in (1, 3):
            p.grad = grad * factor
            stepper.step()
        (p * p).sum().backward()
        return [x.grad.tolist() for x in (start, grad)]

    expected = gradients(torch)
    for ours, theirs in zip(gradients(mindtorch), expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-12)
