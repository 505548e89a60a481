"""Owns the hook that averages gradients among all ranks at first, then within small groups."""

import logging

import mindtorch.distributed as dist
from mindtorch._tensor.tensor import Tensor
from mindtorch.futures import Future

from .debugging_hooks import noop_hook
from .default_hooks import _allreduce_fut

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]
logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """From iteration `start_localSGD_iter` on, gradients are averaged in `subgroup` (a group of
    `new_subgroups()` for None), or not at all without `post_local_gradient_allreduce`."""

    __slots__ = (
        "iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup",
    )  # fmt: skip

    def __init__(
        self, process_group: dist.ProcessGroup | None, subgroup: dist.ProcessGroup | None,
        start_localSGD_iter: int,  # noqa: N803 - torch's name
        post_local_gradient_allreduce: bool = True,
    ) -> None:  # fmt: skip
        logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: dist.GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(  # noqa: N802 - torch's name
    state: PostLocalSGDState, bucket: dist.GradBucket
) -> Future[Tensor]:
    """The mean of gradients of all ranks, or later of the small group's."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())
