"""Profiles a small training with torch_npu's profiler into the folder that argument 1 names.

Argument 2, `Text` or `Db`, says what the profiler writes.
"""

import sys

import torch
from torch_npu import profiler


def train(folder: str, kind: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model.to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8).to("npu")
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(folder),
        profile_memory=True,
        experimental_config=profiler._ExperimentalConfig(
            profiler_level=profiler.ProfilerLevel.Level1,
            mstx=True,
            export_type=getattr(profiler.ExportType, kind),
        ),
    ) as profile:
        for step in range(4):
            number = torch.npu.mstx.range_start(f"step {step}")
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            torch.npu.mstx.range_end(number)
            profile.step()


if __name__ == "__main__":
    train(*sys.argv[1:])
