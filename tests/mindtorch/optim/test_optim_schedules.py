"""Every schedule sets torch's rates, step by step, and resumes from its state dict."""

import warnings
from typing import Any

import pytest
from optim_pairs import torch

import mindtorch

Make = Any
CASES: list[tuple[str, Make]] = [
    ("lambda", lambda s, o: s.LambdaLR(o, lambda e: 0.95**e)),
    ("lambdas", lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)])),
    ("multiplicative", lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9)),
    ("step", lambda s, o: s.StepLR(o, 3, gamma=0.5)),
    ("multi step", lambda s, o: s.MultiStepLR(o, [2, 5, 5], gamma=0.5)),
    ("constant", lambda s, o: s.ConstantLR(o, 0.5, 4)),
    ("linear", lambda s, o: s.LinearLR(o, 0.2, 0.9, 6)),
    ("exponential", lambda s, o: s.ExponentialLR(o, 0.9)),
    ("polynomial", lambda s, o: s.PolynomialLR(o, 8, power=2.0)),
    ("cosine", lambda s, o: s.CosineAnnealingLR(o, 5, eta_min=0.01)),
    ("restarts", lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001)),
    ("cyclic", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 4)),
    ("cyclic shrinking", lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 3, mode="triangular2")),
    ("cyclic range", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9)),
    ("one cycle", lambda s, o: s.OneCycleLR(o, 0.3, total_steps=14)),
    (
        "one cycle in three",
        lambda s, o: s.OneCycleLR(
            o, [0.3, 0.5], epochs=2, steps_per_epoch=8, anneal_strategy="linear", three_phase=True
        ),
    ),
    (
        "sequential",
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingLR(o, 6)], [3]
        ),
    ),
    (
        "sequential from the second",
        lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [0]),
    ),
    (
        "sequential of three",
        lambda s, o: s.SequentialLR(
            o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [2, 6]
        ),
    ),
    (
        "chained",
        lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9)]),
    ),
]
IDS = [case[0] for case in CASES]
STEPS = 13


def optimizer_of(library: Any) -> Any:
    a, b = (library.nn.Parameter(library.ones(2)) for _ in range(2))
    groups = [{"params": [a]}, {"params": [b], "lr": 0.2}]
    return library.optim.SGD(groups, lr=0.1, momentum=0.9)


def trace(library: Any, make: Make, steps: int = STEPS) -> tuple[list[list[float]], Any, Any]:
    optimizer = optimizer_of(library)
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = make(library.optim.lr_scheduler, optimizer)
        for _ in range(steps):
            rates.append([float(group["lr"]) for group in optimizer.param_groups])
            rates[-1] += [float(group["momentum"]) for group in optimizer.param_groups]
            optimizer.step()
            scheduler.step()
    return rates, scheduler, optimizer


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_rates_are_torchs(case: tuple[str, Make]) -> None:
    expected, theirs, _ = trace(torch, case[1])
    found, mine, _ = trace(mindtorch, case[1])
    for a, b in zip(found, expected, strict=True):
        assert a == pytest.approx(b, rel=1e-9)
    assert mine.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-9)
    assert mine.last_epoch == theirs.last_epoch if hasattr(theirs, "last_epoch") else True


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_loaded_schedule_goes_on_where_it_was_saved(case: tuple[str, Make]) -> None:
    _, scheduler, optimizer = trace(mindtorch, case[1], 5)
    saved, groups = scheduler.state_dict(), optimizer.state_dict()
    _, other, fresh = trace(mindtorch, case[1], 0)
    fresh.load_state_dict(groups)
    other.load_state_dict(saved)
    for _ in range(4):
        for o, s in ((optimizer, scheduler), (fresh, other)):
            o.step()
            s.step()
        assert [g["lr"] for g in fresh.param_groups] == [g["lr"] for g in optimizer.param_groups]


PLATEAUS: list[dict[str, Any]] = [
    {"patience": 1},
    {"patience": 0, "factor": 0.5, "cooldown": 2},
    {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.1},
    {"patience": 0, "min_lr": [0.05, 0.01]},
]


@pytest.mark.parametrize("kwargs", PLATEAUS)
def test_plateau_follows_the_metric_as_torchs(kwargs: dict[str, Any]) -> None:
    metrics = [3.0, 2.0, 2.0, 2.5, 1.0, 1.0, 1.0, 1.0, 0.5, 0.9, 0.9]
    traces = []
    for library in (torch, mindtorch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **kwargs)
        rates = []
        for metric in metrics:
            scheduler.step(metric)
            rates.append([group["lr"] for group in optimizer.param_groups])
        traces.append(rates)
    assert traces[1] == traces[0]


def test_swa_rates_are_torchs() -> None:
    traces = []
    for library in (torch, mindtorch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.swa_utils.SWALR(optimizer, 0.05, 4)
        rates = []
        for _ in range(7):
            optimizer.step()
            scheduler.step()
            rates += [group["lr"] for group in optimizer.param_groups]
        traces.append(rates)
    assert traces[1] == pytest.approx(traces[0], rel=1e-9)


def test_a_schedule_stepped_first_warns() -> None:
    optimizer = optimizer_of(mindtorch)
    scheduler = mindtorch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        scheduler.step()


def test_rates_asked_for_outside_a_step_warn() -> None:
    scheduler = mindtorch.optim.lr_scheduler.StepLR(optimizer_of(mindtorch), 1)
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


REFUSED: list[Any] = [
    lambda s, o: s.StepLR(3, 1),
    lambda s, o: s.StepLR(o, 1, last_epoch=3),
    lambda s, o: s.LambdaLR(o, [lambda e: e]),
    lambda s, o: s.ConstantLR(o, 2.0),
    lambda s, o: s.LinearLR(o, 0.0),
    lambda s, o: s.OneCycleLR(o, 0.1),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-1),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.ReduceLROnPlateau(o, factor=2.0),
    lambda s, o: s.ReduceLROnPlateau(o, mode="best"),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusal_has_torchs_type_and_text(i: int) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - torch decides the class
        REFUSED[i](torch.optim.lr_scheduler, optimizer_of(torch))
    with pytest.raises(type(expected.value)) as found:
        REFUSED[i](mindtorch.optim.lr_scheduler, optimizer_of(mindtorch))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("average", ["get_ema_multi_avg_fn", "get_swa_multi_avg_fn"])
def test_averages_of_lists_are_torchs(average: str) -> None:
    weights = []
    for library in (torch, mindtorch):
        model = library.nn.Linear(2, 1, bias=False)
        utils = library.optim.swa_utils
        averaged = utils.AveragedModel(model, multi_avg_fn=getattr(utils, average)())
        for step in range(4):
            with library.no_grad():
                model.weight.copy_(library.tensor([[1.0 + step, 2.0 * step]]))
            averaged.update_parameters(model)
        weights.append(averaged.module.weight.tolist())
    assert weights[1] == [pytest.approx(row) for row in weights[0]]


def test_averages_pair_parameters_of_a_smaller_model_as_far_as_it_goes(dev):
    """One list call over pairs on npu, one by one on cpu: the same parameters move on both."""
    nn = mindtorch.nn
    large, small = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    large, small = large.to(dev), small.to(dev)
    averaged = mindtorch.optim.swa_utils.AveragedModel(large)
    averaged.update_parameters(large)
    averaged.update_parameters(small)
    mean = (large[0].weight + small[0].weight) / 2
    mindtorch.testing.assert_close(averaged.module[0].weight, mean)
    mindtorch.testing.assert_close(averaged.module[1].weight, large[1].weight)
    with pytest.raises(RuntimeError, match="size of tensor"):
        averaged.update_parameters(mindtorch.nn.Linear(3, 4).to(dev))


@pytest.mark.parametrize(
    ("name", "lists"),
    [
        ("add", ("ab", "a")), ("add", ("ab", [1.0])), ("pow", ("ab", [2.0])),
        ("lerp", ("ab", "a", 0.5)), ("lerp", ("ab", "ab", "a")), ("lerp", ("ab", "ab", [0.5])),
        ("addcmul", ("ab", "a", "ab")), ("addcmul", ("ab", "ab", "a")),
        ("addcdiv", ("ab", "ab", "ab", [1.0])), ("mm", ("ab", "a")), ("add", ("", "")),
    ],
)  # fmt: skip
def test_lists_of_other_lengths_are_refused_in_torchs_words(name, lists):
    """A word stands for a list of as many tensors as it has letters."""
    words = []
    for lib in (torch, mindtorch):
        args = [[lib.ones(2, 2) for _ in a] if isinstance(a, str) else a for a in lists]
        with pytest.raises(RuntimeError) as refusal:
            getattr(lib, f"_foreach_{name}")(*args)
        words.append(str(refusal.value))
    assert words[0] == words[1]
