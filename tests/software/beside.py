"""Lets torchvision import where its extension does not fit the torch that is there.

Its wheels are built for one torch each. Without the extension, `import torchvision` fails at two
operators whose shapes it registers: they are declared here, without kernels, so that all of
torchvision that is Python runs. mindtorch declares them by itself.
"""

import importlib.util
from pathlib import Path

import torch


def declare():
    """Declare the operators, where torch is torch and torchvision's extension does not load."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or "mindtorch" in torch.__file__:
        return
    try:
        for extension in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(extension))
    except OSError:
        schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", schema)
