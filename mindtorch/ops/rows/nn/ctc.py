"""Rows of connectionist temporal classification (Graves et al., 2006) and its gradient."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *
from .reduction import get_enum, reduced

Sizes = tuple[int, ...]


class States(NamedTuple):
    """The states of each sequence, blanks between labels: `[N, S]` symbols and whether a state is
    reached from the one two before; `[N]` which is the last."""

    symbols: Array
    skips: Array
    last: Array

    def ends(self) -> Array:
        """Which states a path may end in."""
        at = np.arange(self.symbols.shape[1])
        return (at == self.last[:, None]) | (at == self.last[:, None] - 1)


def _states(targets: Array, sizes: Sizes, blank: int) -> States:
    symbols = np.full((len(sizes), 2 * max(sizes, default=0) + 1), blank)
    starts = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    for row, size, start, own in zip(range(len(sizes)), sizes, starts, symbols, strict=True):
        labels = targets[row, :size] if targets.ndim == 2 else targets[start : start + size]
        own[1 : 2 * size : 2] = labels
    skips = np.zeros(symbols.shape, bool)
    skips[:, 2:] = (symbols[:, 2:] != blank) & (symbols[:, 2:] != symbols[:, :-2])
    return States(symbols, skips, 2 * np.array(sizes, np.int64))


def _emitted(logs: Array, states: States) -> Array:
    """`[T, N, S]`: the log probability of each state's symbol at each step."""
    symbols = np.broadcast_to(states.symbols, (len(logs), *states.symbols.shape))
    return np.take_along_axis(logs.astype(np.float64), symbols, 2)


def _moved(paths: Array, by: int, where: Array | None = None) -> Array:
    """Paths that go on by `by` states (back where negative), of those in `where` alone."""
    moved = np.full_like(paths, -np.inf)
    if by > 0:
        moved[:, by:] = paths[:, :-by]
    else:
        moved[:, :by] = paths[:, -by:]
    return moved if where is None else np.where(where, moved, -np.inf)


def _losses(
    logs: Array, targets: Array, times: Sizes, sizes: Sizes, blank: int, _zero: bool
) -> tuple[Array, Array]:
    """-log of the probability of all paths of each sequence; log alpha `[N, T, S]`."""
    states = _states(targets, sizes, blank)
    emitted, batch = _emitted(logs, states), np.arange(len(times))
    alpha = np.full((len(times), len(logs), states.symbols.shape[1]), -np.inf)
    paths = np.full(states.symbols.shape, -np.inf)
    paths[:, :2] = 0
    for t in range(len(logs)):
        if t:
            ways = np.logaddexp(paths, _moved(paths, 1))
            paths = np.logaddexp(ways, _moved(paths, 2, states.skips))
        alpha[:, t] = paths = paths + emitted[t]
    if not len(logs):
        return np.where(states.last > 0, np.inf, 0.0), alpha
    final = alpha[batch, np.maximum(np.array(times), 1) - 1]
    loss = -np.logaddexp.reduce(np.where(states.ends(), final, -np.inf), 1)
    return np.where(np.array(times) > 0, loss, np.where(states.last > 0, np.inf, 0.0)), alpha


def _slopes(
    grad: Array, logs: Array, targets: Array, times: Sizes, sizes: Sizes, loss: Array,
    alpha: Array, blank: int, zero: bool,
) -> Array:  # fmt: skip
    """A class's probability less its share of the paths that read as the target."""
    states, until = _states(targets, sizes, blank), np.array(times)[:, None]
    emitted, batch = _emitted(logs, states), np.arange(len(times))[:, None]
    ends, real = states.ends(), np.arange(states.symbols.shape[1]) <= states.last[:, None]
    alpha = alpha[..., : states.symbols.shape[1]]
    passing = _moved(states.skips.astype(float), -2) > 0
    result = np.zeros(logs.shape)
    paths = np.full(states.symbols.shape, -np.inf)
    for t in reversed(range(len(logs))):
        ways = np.logaddexp(paths, _moved(paths, -1))
        ways = np.logaddexp(ways, _moved(paths, -2, passing))
        ways = np.where(until == t + 1, np.where(ends, 0.0, -np.inf), ways)
        paths = np.where(real & (t < until), ways + emitted[t], -np.inf)
        through = np.where(paths > -np.inf, alpha[:, t] + paths, -np.inf)
        share = np.full(logs.shape[1:], -np.inf)
        np.logaddexp.at(share, (batch, states.symbols), through)
        slope = np.exp(logs[t]) - np.exp(share + loss[:, None] - logs[t])
        result[t] = np.where(t < until, slope * grad[:, None], 0)
    return np.where((zero & np.isinf(loss))[:, None], 0.0, result)


_SIZES = "int[] input_lengths, int[] target_lengths"
_INPUTS = ("log_probs", "targets", "input_lengths", "target_lengths")
_RESULTS = ("neg_log_likelihood", "log_alpha")
_FLOATS = in_dtypes("log_probs", *SHORT_FLOATS, "float64")


def _slope(grad: Tensor, *args: Any) -> Any:
    return aten._ctc_loss_backward(grad, *args)


def _shapes(
    logs: Geometry, targets: Geometry, times: Sizes, sizes: Sizes, *rest: Any
) -> tuple[Geometry, Geometry]:
    steps, batch = logs.shape[:2]
    states = 2 * max(sizes, default=0) + 1
    return logs.fresh((batch,)), logs.fresh((batch, steps, states))


_LOGS, _LABELS = Arg((5, 2, 4), low=-3, high=-0.5), Arg((2, 2), "int64", 1, 3)
_CALL = (_LABELS, (5, 5), (2, 2))
op(
    f"_ctc_loss(Tensor log_probs, Tensor targets, {_SIZES}, int blank=0,"
    " bool zero_infinity=False) -> (Tensor neg_log_likelihood, Tensor log_alpha)",
    unsupported={"bool whole half complex": "ctc_loss_cpu"},
    infer=_shapes,
    cpu=_losses,
    # torch's operator leaves infinite losses to the one around it, and its gradient sees them.
    aclnn=call("aclnnCtcLoss", *_INPUTS, "blank", False, *_RESULTS, when=_FLOATS),
    grad={
        "log_probs": Derivative(
            _slope,
            ("grad_neg_log_likelihood", *_INPUTS, *_RESULTS, "blank", "zero_infinity"),
        )
    },
    samples=calls((Arg(_LOGS.shape, low=-3, high=-0.5, grad=False), *_CALL)),
    tolerance="composite",
    fixed_shape=True,
)
op(
    f"_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, {_SIZES},"
    " Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    infer=lambda grad, logs, *rest: logs.fresh(),
    cpu=_slopes,
    aclnn=call(
        "aclnnCtcLossBackward", "grad", *_INPUTS, *_RESULTS, "blank", "zero_infinity", "out",
        when=_FLOATS,
    ),
    unsampled="what it is given belongs together: the gradient of _ctc_loss runs it",
    tolerance="composite",
    fixed_shape=True,
)  # fmt: skip


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
    "blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
    autocast="float32 on cpu",
    unsupported={"bool whole half complex": "ctc_loss_cpu"},
    # As torch's, the gradient holds for logs of probabilities only: no numbers agree with it.
    samples=calls(
        (
            Arg((5, 2, 4), low=-3, high=-0.5, grad=False),
            Arg((2, 2), "int64", 1, 3),
            (5, 5),
            (2, 1),
            0,
            "sum",
        )
    ),
    tolerance="composite",
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification; log_probs `[T, N,
    C]`, targets `[N, S]` or concatenated."""
    get_enum(reduction)
    one = log_probs.dim() != 3
    if one:
        log_probs = log_probs.unsqueeze(1)
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(lengths, Tensor) and lengths.dtype.category != dt.INTEGER:
            raise RuntimeError(f"{name} must be integral")
    times, sizes = _ints(input_lengths), _ints(target_lengths)
    _check_ctc(log_probs, targets, times, sizes, blank)
    labels = targets.to(log_probs.device)
    loss, _ = aten._ctc_loss(log_probs, labels, tuple(times), tuple(sizes), blank, zero_infinity)
    if zero_infinity:
        loss = aten.where(loss == float("inf"), aten.zeros_like(loss), loss)
    if reduction != "mean":
        return loss.squeeze(0) if one and reduction == "none" else reduced(loss, reduction)
    lengths = aten.tensor(sizes, device=loss.device).to(loss.dtype).clamp(min=1)
    return (loss / lengths).mean()


def _check_ctc(
    logs: Tensor, targets: Tensor, times: list[int], sizes: list[int], blank: int
) -> None:
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if logs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {logs.dim()}-dimensional tensor for argument"
            f" #1 'log_probs' {where}"
        )
    if targets.dim() not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.dim()}-dimensional tensor for argument"
            f" #2 'targets' {where}"
        )
    steps, batch, labels = logs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", times), ("target_lengths", sizes)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    for name, lengths in (("target_lengths", sizes), ("input_lengths", times)):
        if any(n < 0 for n in lengths):
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value"
                f" {next(n for n in lengths if n < 0)} {where}"
            )
    if any(time > steps for time in times):
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value"
            f" {next(t for t in times if t > steps)} {where}"
        )
    flat = targets.dim() == 1
    shape, longest = tuple(targets.shape), max(sizes, default=0)
    first = sum(sizes) if flat else batch
    if shape[0] != first or (not flat and shape[1] < longest):
        size = f"at least {longest}" if shape[0] == first else f"{first}"
        at = int(shape[0] == first)
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension {at}, but got size {shape[at]} for"
            f" argument #2 'targets' {where}"
        )


def _ints(lengths: Tensor | Sequence[int]) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(v) for v in values] if isinstance(values, Sequence) else [int(values)]
