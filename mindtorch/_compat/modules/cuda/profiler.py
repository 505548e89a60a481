"""torch.cuda.profiler: refused, there is no CUDA."""

from __future__ import annotations

from mindtorch._compat.refusals import refused

__all__ = ["init", "profile", "start", "stop"]
_WHY = "mindtorch has no CUDA device; torch.profiler sees npu's calls"
init = refused("torch.cuda.profiler.init", _WHY)
profile = refused("torch.cuda.profiler.profile", _WHY)
start = refused("torch.cuda.profiler.start", _WHY)
stop = refused("torch.cuda.profiler.stop", _WHY)
