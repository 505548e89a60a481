"""Owns the hook that sends gradients as products of narrow matrices (PowerSGD).

A gradient M [n, m] goes as P [n, r] and Q [m, r], M ≈ P Qᵀ: P = M Q is averaged and made
orthonormal, then Q = Mᵀ P is. What is lost is added to the next gradient.
"""

import logging
from collections.abc import Iterator
from typing import Any, cast

import mindtorch
import mindtorch.distributed as dist
from mindtorch._tensor.tensor import Tensor
from mindtorch.futures import Future

from .default_hooks import _allreduce_fut

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]
logger = logging.getLogger(__name__)


def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Make the columns of [k, n, r] orthonormal in place; AssertionError for other shapes."""
    if matrices.dim() != 3 or matrices.shape[2] > matrices.shape[1]:
        raise AssertionError
    rank = matrices.shape[2]
    if rank > 2 and matrices.dtype not in (mindtorch.float16, mindtorch.bfloat16):
        matrices.copy_(mindtorch.linalg.qr(matrices)[0])
        return
    for i in range(rank):
        column = matrices[:, :, i : i + 1]
        length = mindtorch.norm(column, dim=1, keepdim=True)
        column /= length + epsilon if epsilon else length
        if i + 1 < rank:
            rest = matrices[:, :, i + 1 :]
            rest -= mindtorch.sum(column * rest, dim=1, keepdim=True) * column


class PowerSGDState:
    """How gradients are compressed, and what is kept from one iteration to the next.

    ValueError for a start before the third iteration where errors or factors are kept.
    """

    __slots__ = [  # noqa: RUF023 - torch's order and kind, which programs print
        "process_group", "matrix_approximation_rank", "start_powerSGD_iter", "min_compression_rate",
        "orthogonalization_epsilon", "use_error_feedback", "warm_start",
        "batch_tensors_with_same_shape", "rng", "error_dict", "p_memory_dict", "q_memory_dict",
        "iter", "total_numel_before_compression", "total_numel_after_compression",
        "compression_stats_logging_frequency", "next_stats_report",
    ]  # fmt: skip

    def __init__(
        self, process_group: dist.ProcessGroup | None, matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,  # noqa: N803 - torch's name
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        import numpy as np

        logger.info(
            "PowerSGD config: matrix_approximation_rank = %s; start_powerSGD_iter = %s; "
            "min_compression_rate = %s; orthogonalization_epsilon = %s; use_error_feedback = %s; "
            "warm_start = %s; random_seed = %s; compression_stats_logging_frequency = %s; "
            "batch_tensors_with_same_shape = %s",
            matrix_approximation_rank, start_powerSGD_iter, min_compression_rate,
            orthogonalization_epsilon, use_error_feedback, warm_start, random_seed,
            compression_stats_logging_frequency, batch_tensors_with_same_shape,
        )  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = self.next_stats_report = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)

    def __getstate__(self) -> dict[str, Any]:
        """All but the group."""
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What was saved, with the group of all."""
        self.process_group = dist._get_default_group()
        logger.warning(
            "NOTE: Process group will be set to a default group (i.e. the world size).            "
            "    If a different group is desired, please set `self.process_group` after PowerSGD "
            "state is loaded."
        )
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: dist.GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def _waits(self, bucket: dist.GradBucket) -> bool:
        """Whether gradients go whole as yet; counts those iterations."""
        if self.iter >= self.start_powerSGD_iter:
            return False
        self.maybe_increase_iter(bucket)
        return True

    def compression_stats(self) -> tuple[float, int, int]:
        """(rate, elements before, elements after) of all that was compressed."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0, before, after)

    def _report(self, bucket: dist.GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            logger.info(
                "Compression stats: iter %s, total before compression %s, total after compression "
                "%s, rate %s", self.iter, before, after, rate,
            )  # fmt: skip
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _worth(self, matrix: Tensor) -> bool:
        """Whether to compress a matrix [n, m], which is counted."""
        n, m = matrix.shape
        after = (n + m) * self._rank(matrix)
        worth = after * self.min_compression_rate < n * m
        self.total_numel_before_compression += n * m
        self.total_numel_after_compression += after if worth else n * m
        return worth

    def _rank(self, matrix: Tensor) -> int:
        return min(*matrix.shape[-2:], self.matrix_approximation_rank)

    def _batches(self, matrices: list[Tensor]) -> Iterator[tuple[list[Tensor], Tensor]]:
        """Matrices by shapes, in the order in which shapes come: (those, [k, n, m])."""
        by_shape: dict[Any, list[Tensor]] = {}
        for matrix in matrices:
            by_shape.setdefault(matrix.shape, []).append(matrix)
        for alike in by_shape.values():
            if self.batch_tensors_with_same_shape and len(alike) > 1:
                yield alike, mindtorch.stack(alike)
            else:
                yield from (([matrix], matrix.unsqueeze(0)) for matrix in alike)

    def _factors(
        self, place: int, batches: list[Tensor], like: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Views [k, n, r] and [k, m, r] of the bucket's memory; the second orthonormal."""
        shapes = [(b.shape[0], b.shape[1], b.shape[2], self._rank(b)) for b in batches]
        fresh = not self.warm_start or place not in self.p_memory_dict
        factors: list[list[Tensor]] = []
        for memory, sizes in (
            (self.p_memory_dict, [(k, n, r) for k, n, _, r in shapes]),
            (self.q_memory_dict, [(k, m, r) for k, _, m, r in shapes]),
        ):
            counts = [k * n * r for k, n, r in sizes]
            if fresh:
                memory[place] = mindtorch.empty(sum(counts), device=like.device, dtype=like.dtype)
            parts = memory[place].split(counts) if counts else ()
            factors.append([part.view(size) for part, size in zip(parts, sizes, strict=True)])
        ps, qs = factors
        with mindtorch.random.fork_rng(devices=[], enabled=fresh):
            if fresh:
                mindtorch.manual_seed(self.rng.randint(1_000_000_000))
            for q in qs:
                if fresh:
                    q.copy_(mindtorch.randn(*q.shape, device="cpu", dtype=q.dtype))
                _orthogonalize(q, self.orthogonalization_epsilon)
        return ps, qs


def _total(tensor: Tensor, group: Any) -> Future[Any]:
    work = dist.all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future()


def powerSGD_hook(  # noqa: N802 - torch's name
    state: PowerSGDState, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients, nearly; exactly before the state's first iteration."""
    group: Any = dist.group.WORLD if state.process_group is None else state.process_group
    flat = bucket.buffer()
    if state._waits(bucket):
        return _allreduce_fut(group, flat)
    place = bucket.index()
    corrected: Tensor | None = None
    if state.use_error_feedback:
        if place in state.error_dict:
            flat.add_(state.error_dict[place])
        else:
            state.error_dict[place] = mindtorch.zeros_like(flat)
        corrected = flat.detach().clone()
    narrow: list[Tensor] = []
    whole: list[Tensor] = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1)
        (narrow if state._worth(matrix) else whole).append(matrix)
    state._report(bucket)
    rest = mindtorch.cat([m.view(-1) for m in whole]) if whole else flat.new_empty(0)
    pairs = list(state._batches(narrow))
    batches = [batch for _, batch in pairs]
    ps, qs = state._factors(place, batches, flat)
    for batch, p, q in zip(batches, ps, qs, strict=True):
        p.copy_(mindtorch.bmm(batch, q))

    def sum_ps(future: Future[Any]) -> Any:
        mean = future.value()[0].div_(group.size())
        for matrix, part in zip(whole, mean.split([m.numel() for m in whole]), strict=True):
            matrix.copy_(part.view_as(matrix))
        return _total(state.p_memory_dict[place], group).wait()[0]

    def sum_qs(future: Future[Any]) -> Any:
        state.p_memory_dict[place] = future.value()
        for batch, p, q in zip(batches, ps, qs, strict=True):
            _orthogonalize(p, state.orthogonalization_epsilon)
            q.copy_(mindtorch.bmm(batch.transpose(1, 2), p))
        return _total(state.q_memory_dict[place], group).wait()[0]

    def product(future: Future[Any]) -> Tensor:
        state.q_memory_dict[place] = future.value().div_(group.size())
        for (alike, _), p, q in zip(pairs, ps, qs, strict=True):
            for matrix, near in zip(alike, mindtorch.bmm(p, q.transpose(1, 2)), strict=True):
                matrix.copy_(near)
        if corrected is not None:
            state.error_dict[place] = corrected - flat
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        state.maybe_increase_iter(bucket)
        return flat

    return cast("Future[Tensor]", _total(rest, group).then(sum_ps).then(sum_qs).then(product))


def batched_powerSGD_hook(  # noqa: N802 - torch's name
    state: PowerSGDState, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of all ranks' gradients before the state's first iteration; AssertionError from
    then on, as in torch, whose check of factors does not take this hook's."""
    if state._waits(bucket):
        return _allreduce_fut(state.process_group, bucket.buffer())
    raise AssertionError
