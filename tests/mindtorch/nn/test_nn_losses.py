"""Every loss: values, gradients and error texts are torch's."""

from typing import Any

import pytest
from nn_differential import compare_call, compare_modules, integers, rand, torch

import mindtorch
import mindtorch.nn.functional as F

TF: Any = torch.nn.functional


def positive(*shape: int, seed: int = 7) -> Any:
    return (rand(*shape, grad=False, seed=seed).abs() + 0.1).requires_grad_()


def probabilities(*shape: int) -> Any:
    return rand(*shape, grad=False).sigmoid().detach().requires_grad_()


SIGNS = (integers(2, 4) * 2 - 1).float()
LABELS = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 2]])
PLAIN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("mse_loss", (rand(3, 4), rand(3, 4, seed=2)), {}),
    ("mse_loss", (rand(3, 4), rand(3, 4, seed=2)), {"weight": positive(3, 4).detach()}),
    ("l1_loss", (rand(3, 4), rand(3, 4, seed=2)), {}),
    ("smooth_l1_loss", (rand(3, 4) * 2, rand(3, 4, seed=2)), {"beta": 0.5}),
    ("smooth_l1_loss", (rand(3, 4), rand(3, 4, seed=2)), {"beta": 0.0}),
    ("huber_loss", (rand(3, 4), rand(3, 4, seed=2)), {"delta": 0.7}),
    ("cross_entropy", (rand(4, 5), integers(5, 4)), {}),
    ("cross_entropy", (rand(5), integers(5, 1)[0]), {}),
    ("cross_entropy", (rand(4, 5, 3), integers(5, 4, 3)), {}),
    ("cross_entropy", (rand(2, 5, 3, 2), integers(5, 2, 3, 2)), {"ignore_index": 2}),
    ("cross_entropy", (rand(4, 5), integers(5, 4)), {"label_smoothing": 0.1}),
    (
        "cross_entropy",
        (rand(4, 5), integers(5, 4)),
        {"weight": positive(5).detach(), "label_smoothing": 0.2, "ignore_index": 1},
    ),
    ("cross_entropy", (rand(4, 5), rand(4, 5, seed=3).softmax(1).detach()), {}),
    (
        "cross_entropy",
        (rand(4, 5), rand(4, 5, seed=3).softmax(1).detach()),
        {"label_smoothing": 0.1, "weight": positive(5).detach()},
    ),
    ("nll_loss", (rand(4, 5), integers(5, 4)), {"weight": positive(5).detach()}),
    ("nll_loss", (rand(4, 5, 2), integers(5, 4, 2)), {"ignore_index": 0}),
    ("binary_cross_entropy", (probabilities(3, 4), positive(3, 4).sigmoid().detach()), {}),
    ("binary_cross_entropy_with_logits", (rand(3, 4), probabilities(3, 4)), {}),
    (
        "binary_cross_entropy_with_logits",
        (rand(3, 4), probabilities(3, 4).detach()),
        {"pos_weight": positive(4).detach(), "weight": positive(3, 4).detach()},
    ),
    ("kl_div", (rand(3, 4), probabilities(3, 4)), {}),
    ("kl_div", (rand(3, 4), rand(3, 4, seed=2)), {"log_target": True}),
    ("poisson_nll_loss", (rand(3, 4), positive(3, 4)), {"full": True}),
    ("poisson_nll_loss", (positive(3, 4), positive(3, 4, seed=2)), {"log_input": False}),
    ("gaussian_nll_loss", (rand(3, 4), rand(3, 4, seed=2), positive(3, 4)), {"full": True}),
    ("gaussian_nll_loss", (rand(3, 4), rand(3, 4, seed=2), positive(3)), {}),
    ("hinge_embedding_loss", (rand(4), SIGNS), {}),
    ("soft_margin_loss", (rand(4), SIGNS), {}),
    ("margin_ranking_loss", (rand(4), rand(4, seed=2), SIGNS), {"margin": 0.3}),
    ("cosine_embedding_loss", (rand(4, 3), rand(4, 3, seed=2), SIGNS), {"margin": 0.1}),
    ("multi_margin_loss", (rand(4, 5), integers(5, 4)), {"p": 2}),
    ("multi_margin_loss", (rand(5), integers(5, 1)[0]), {"margin": 0.5}),
    ("multilabel_margin_loss", (rand(2, 4), LABELS), {}),
    ("multilabel_soft_margin_loss", (rand(3, 4), probabilities(3, 4).detach()), {}),
    ("triplet_margin_loss", (rand(4, 3), rand(4, 3, seed=2), rand(4, 3, seed=3)), {"swap": True}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("i", range(len(PLAIN)), ids=[f"{i} {c[0]}" for i, c in enumerate(PLAIN)])
def test_loss_is_torchs(i: int, reduction: str) -> None:
    name, args, kwargs = PLAIN[i]
    leaves = tuple(a.detach().requires_grad_(a.requires_grad) for a in args)
    compare_call(getattr(F, name), getattr(TF, name), leaves, reduction=reduction, **kwargs)


def test_kl_div_divides_by_the_batch() -> None:
    compare_call(F.kl_div, TF.kl_div, (rand(3, 4), probabilities(3, 4)), reduction="batchmean")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss_is_torchs(reduction: str) -> None:
    # torch's gradient is the one of logits behind log_softmax, so that is where both are compared.
    targets = torch.tensor([[1, 2, 2, 3], [4, 1, 0, 0], [3, 3, 1, 0]])
    lengths = torch.tensor([9, 8, 7]), torch.tensor([4, 2, 3])

    def through(function: Any) -> Any:
        return lambda logits, *rest: function(logits.log_softmax(-1), *rest, reduction=reduction)

    args = (rand(9, 3, 5), targets, *lengths)
    compare_call(through(F.ctc_loss), through(TF.ctc_loss), args)


def test_adaptive_log_softmax_is_torchs() -> None:
    compare_modules(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8], div_value=2.0),
        (rand(5, 8), integers(12, 5)),
    )


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("MSELoss", (rand(3, 4), rand(3, 4, seed=2)), {"reduction": "sum"}),
    ("L1Loss", (rand(3, 4), rand(3, 4, seed=2)), {}),
    ("SmoothL1Loss", (rand(3, 4), rand(3, 4, seed=2)), {"beta": 0.3}),
    ("HuberLoss", (rand(3, 4), rand(3, 4, seed=2)), {}),
    ("CrossEntropyLoss", (rand(4, 5), integers(5, 4)), {"label_smoothing": 0.1}),
    ("NLLLoss", (rand(4, 5), integers(5, 4)), {"ignore_index": 3}),
    ("BCELoss", (probabilities(3, 4), probabilities(3, 4).detach()), {}),
    ("BCEWithLogitsLoss", (rand(3, 4), probabilities(3, 4).detach()), {}),
    ("KLDivLoss", (rand(3, 4), probabilities(3, 4).detach()), {"reduction": "batchmean"}),
    ("PairwiseDistance", (rand(3, 4), rand(3, 4, seed=2)), {"p": 1.0, "keepdim": True}),
    ("CosineSimilarity", (rand(3, 4), rand(3, 4, seed=2)), {"dim": 0}),
    ("CosineEmbeddingLoss", (rand(4, 3), rand(4, 3, seed=2), SIGNS), {}),
    ("TripletMarginLoss", (rand(4, 3), rand(4, 3, seed=2), rand(4, 3, seed=3)), {"p": 1.0}),
    (
        "TripletMarginWithDistanceLoss",
        (rand(4, 3), rand(4, 3, seed=2), rand(4, 3, seed=3)),
        {"swap": True},
    ),
    ("MultiMarginLoss", (rand(4, 5), integers(5, 4)), {}),
    ("MultiLabelMarginLoss", (rand(2, 4), LABELS), {}),
    ("SoftMarginLoss", (rand(4), SIGNS), {}),
    ("HingeEmbeddingLoss", (rand(4), SIGNS), {"margin": 0.4}),
    ("MarginRankingLoss", (rand(4), rand(4, seed=2), SIGNS), {}),
    ("PoissonNLLLoss", (rand(3, 4), probabilities(3, 4).detach()), {}),
    ("GaussianNLLLoss", (rand(3, 4), rand(3, 4, seed=2), positive(3, 4)), {}),
]


@pytest.mark.parametrize("case", LAYERS, ids=[case[0] for case in LAYERS])
def test_loss_layer_is_torchs(case: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, kwargs = case
    compare_modules(lambda nn: getattr(nn, name)(**kwargs), args)


def test_weights_of_a_loss_are_a_buffer() -> None:
    loss = mindtorch.nn.CrossEntropyLoss(weight=mindtorch.ones(3))
    assert list(loss.state_dict()) == ["weight"]


REFUSED: list[Any] = [
    lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction="median"),
    lambda t: t.nn.functional.nll_loss(t.ones(2, 3), t.tensor([0])),
    lambda t: t.nn.functional.binary_cross_entropy(t.ones(2), t.ones(3)),
    lambda t: t.nn.functional.binary_cross_entropy_with_logits(t.ones(2), t.ones(3)),
    lambda t: t.nn.functional.huber_loss(t.ones(2), t.ones(2), delta=0),
    lambda t: t.nn.functional.smooth_l1_loss(t.ones(2), t.ones(2), beta=-1),
    lambda t: t.nn.functional.triplet_margin_loss(t.ones(1, 2), t.ones(1, 2), t.ones(1, 2), -1),
    lambda t: t.nn.MultiMarginLoss(p=3),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusal_has_torchs_type_and_text(i: int) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - torch decides the class
        REFUSED[i](torch)
    with pytest.raises(type(expected.value)) as found:
        REFUSED[i](mindtorch)
    assert str(found.value) == str(expected.value)
