"""Owns the compiled operators of torchvision: nms in Python, the others refused by name.

Schemas: torchvision/csrc/ops (https://github.com/pytorch/vision).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor.tensor import Tensor
from ...library.custom import declare, find
from ...ops.namespaces import DEFINED, define
from ...ops.spec import aten

_NAMES = (
    "qnms", "qroi_align", "qroi_pool", "qps_roi_align", "qps_roi_pool", "roi_align",
    "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align",
    "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d",
    "_deform_conv2d_backward",
)  # fmt: skip


def declare_all() -> None:
    """Put the operators into torch.ops.torchvision, once."""
    if "nms" in DEFINED.get("torchvision", {}):
        return
    schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    declare("torchvision::nms", schema, (), __file__)
    find("torchvision::nms").register_kernel(None, nms)
    for name in _NAMES:
        define("torchvision", name, "default", _refusing(name))
    define("torchvision", "_cuda_version", "default", lambda: -1)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise NotImplementedError(
            f"torchvision::{name}: a compiled operator of torchvision, which mindtorch lacks"
        )

    return refuse


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of boxes [N, 4] (x1, y1, x2, y2) that no better box overlaps by more, best first."""
    order = aten.argsort(scores, dim=0, descending=True, stable=True)
    boxes = aten.index_select(dets, 0, order)
    low, high = boxes[:, :2], boxes[:, 2:]
    area = (high - low).prod(1)
    shared = aten.minimum(high[:, None], high[None]) - aten.maximum(low[:, None], low[None])
    inner = aten.clamp(shared, min=0).prod(2)
    overlap = inner / (area[:, None] + area[None] - inner) > iou_threshold
    # Whether each box is suppressed depends on those before it: the loop is over boxes.
    rows = overlap.cpu().tolist()
    dropped = [False] * len(rows)
    for i, row in enumerate(rows):
        if not dropped[i]:
            for j in range(i + 1, len(rows)):
                dropped[j] = dropped[j] or row[j]
    survivors = [i for i, gone in enumerate(dropped) if not gone]
    return order[aten.tensor(survivors, dtype=order.dtype, device=order.device)]
