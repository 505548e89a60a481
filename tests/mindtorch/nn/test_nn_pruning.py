"""Parameters pruned once and again, by every method, beside torch."""

import pytest

import mindtorch
import mindtorch.nn.utils.prune as our_prune

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
import torch.nn.utils.prune as their_prune  # noqa: E402

STEPS = {
    "random": ("random_unstructured", {"amount": 0.3}),
    "l1": ("l1_unstructured", {"amount": 0.5}),
    "five": ("l1_unstructured", {"amount": 5}),
    "columns": ("ln_structured", {"amount": 0.4, "n": 2, "dim": 1}),
    "rows": ("ln_structured", {"amount": 1, "n": float("inf"), "dim": 0}),
    "random rows": ("random_structured", {"amount": 0.5, "dim": 0}),
    "none": ("identity", {}),
}


def masks(t, prune, steps):
    t.manual_seed(3)
    layer = t.nn.Linear(6, 8)
    seen = []
    for step in steps:
        name, kwargs = STEPS[step]
        getattr(prune, name)(layer, "weight", **kwargs)
        seen.append(layer.weight_mask.tolist())
    return seen


@pytest.mark.parametrize("second", STEPS)
@pytest.mark.parametrize("first", STEPS)
def test_what_stays_is_what_stays_in_torch(first, second):
    steps = (first, second, second)
    assert masks(mindtorch, our_prune, steps) == masks(torch, their_prune, steps)


@pytest.mark.parametrize("method", ["RandomUnstructured", "L1Unstructured"])
def test_several_parameters_pruned_together_and_again(method):
    seen = []
    for t, prune in ((mindtorch, our_prune), (torch, their_prune)):
        t.manual_seed(5)
        net = t.nn.Sequential(t.nn.Linear(4, 4), t.nn.Linear(4, 3))
        for _ in range(2):
            prune.global_unstructured([(layer, "weight") for layer in net],
                                      getattr(prune, method), amount=0.4)  # fmt: skip
        seen.append([layer.weight_mask.tolist() for layer in net])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("amount", [1.5, -1, -0.5, 99, "x"])
@pytest.mark.parametrize("name", ["random_unstructured", "l1_unstructured", "random_structured"])
def test_amounts_out_of_range_are_refused_in_torchs_words(name, amount):
    errors = []
    for t, prune in ((mindtorch, our_prune), (torch, their_prune)):
        extra = {"dim": 0} if "_structured" in name else {}
        with pytest.raises((ValueError, TypeError)) as caught:
            getattr(prune, name)(t.nn.Linear(3, 2), "weight", amount=amount, **extra)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
