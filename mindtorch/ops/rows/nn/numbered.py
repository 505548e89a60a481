"""Rows of torch.* that layers of torch.nn.functional also are; they name reductions by number.

Without a number they reduce nothing: so torch 2.13 answers, though its signatures say "mean".
"""

from __future__ import annotations

from ...spec import OPS
from ...words import *

ROW, OTHER = Arg((3, 4)), Arg((3, 4), low=0.5, high=2)
SIGNS = Arg((3,), "int64", 1, 1)


def _word(number: int) -> str:
    """The reduction of a number: 1 is mean, 2 sum, any other none, as in torch."""
    return {1: "mean", 2: "sum"}.get(number, "none")


def _layer(name: str) -> Callable[..., Tensor]:
    """torch.nn.functional's form."""
    layer: Callable[..., Tensor] = OPS[name].entry("function")
    return layer


def _loss(
    name: str, schema: str, *samples: Any, lead: int = 2, broadcast: bool = False, **fields: Any
) -> None:
    """A loss whose last argument but keywords is the number of its reduction.

    The first arguments, `lead` of them, are tensors, which `broadcast` if that is said.
    """

    def run(*args: Any, reduction: int = 0, **options: Any) -> Tensor:
        if broadcast:
            args = tuple(aten.broadcast_tensors(*args))
        return _layer(name)(*args, reduction=_word(reduction), **options)

    names = [part.split()[-1].partition("=")[0] for part in schema.split(", ")]
    body = _named(run, [n for n in names if n != "*"], lead)
    body.__doc__ = f"torch.nn.functional.{name}; reduction 0: none, 1: mean, 2: sum."
    composite(
        f"{name}.numbered({schema}) -> Tensor", body, surface="function",
        samples=calls(*samples), tolerance="chained", **fields,
    )  # fmt: skip


def _named(run: Callable[..., Tensor], names: Sequence[str], lead: int) -> Callable[..., Tensor]:
    """`run` with its first arguments by position and the others by the schema's names."""

    def body(*args: Any, **options: Any) -> Tensor:
        options |= dict(zip(names[lead:], args[lead:], strict=False))
        return run(*args[:lead], **options)

    return body


_loss(
    "cosine_embedding_loss",
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0",
    (ROW, OTHER, SIGNS), Sample((ROW, OTHER, SIGNS, 0.5), {"reduction": 0}), lead=3,
)  # fmt: skip
_loss(
    "hinge_embedding_loss",
    "Tensor input, Tensor target, float margin=1.0, int reduction=0",
    (ROW, Arg((3, 4), low=1, high=1, grad=False)),
    Sample((ROW, Arg((3, 4), low=-1, high=-1, grad=False), 0.5), {"reduction": 2}),
)
_loss(
    "kl_div",
    "Tensor input, Tensor target, int reduction=0, *, bool log_target=False",
    Sample((Arg((3, 4), low=-3, high=-0.1), OTHER), {"reduction": 2}),
    Sample((Arg((3, 4), low=-3, high=-0.1), ROW), {"reduction": 0, "log_target": True}),
)
_loss(
    "margin_ranking_loss",
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0",
    (Arg((3,)), Arg((3,), low=0.5), SIGNS), lead=3, broadcast=True,
)  # fmt: skip
_loss(
    "poisson_nll_loss",
    "Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction",
    (ROW, OTHER, True, False, 1e-8, 1), (OTHER, OTHER, False, True, 1e-8, 2),
)  # fmt: skip
_loss(
    "triplet_margin_loss",
    "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06,"
    " bool swap=False, int reduction=0",
    (ROW, OTHER, Arg((3, 4), low=-2, high=-0.5)),
    Sample((ROW, OTHER, Arg((3, 4), low=-2, high=-0.5), 0.5), {"swap": True, "reduction": 0}),
    lead=3,
)
_loss(
    "ctc_loss",
    "Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0,"
    " int reduction=0, bool zero_infinity=False",
    Sample(
        (Arg((6, 2, 4), low=-3, high=-0.5, grad=False), Arg((2, 2), "int64", 1, 3), (6, 5), (2, 1)),
        {"reduction": 2},
    ),
    lead=4,
    fixed_shape=True,
)  # fmt: skip


@composite(
    "batch_norm.numbered(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    surface="function",
    samples=calls((Arg((4, 3)), None, None, None, None, True, 0.1, 1e-5, False)),
    tolerance="chained",
)
def batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """torch.nn.functional.batch_norm; `cudnn_enabled` has no effect."""
    if not input.ndim:
        raise RuntimeError("batch_norm: expected an input of at least 1 dimension, got none")
    return _layer("batch_norm")(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


@composite(
    "instance_norm.numbered(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
    " Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled)"
    " -> Tensor",
    surface="function",
    samples=calls((Arg((2, 3, 4)), None, None, None, None, True, 0.1, 1e-5, False)),
    tolerance="chained",
)
def instance_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """torch.nn.functional.instance_norm; `cudnn_enabled` has no effect."""
    return _layer("instance_norm")(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )
