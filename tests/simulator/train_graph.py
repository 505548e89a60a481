"""Trains with a step that is captured once and replayed; on the CPU the step just runs."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Step:
    """One step of training on the batch in `inputs` and `targets`."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(1)
        layers = nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4)
        self.model = nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.inputs = torch.zeros(6, 8, device=device)
        self.targets = torch.zeros(6, 4, device=device)

    def __call__(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss


def captured(step: Step) -> Callable[[], torch.Tensor]:
    """The step as a graph; warming up leaves the parameters as they were."""
    npu: Any = torch.npu  # type: ignore[attr-defined]
    before = [p.detach().clone() for p in step.model.parameters()]
    side = npu.Stream()
    side.wait_stream(npu.current_stream())
    with npu.stream(side):
        step()
    npu.current_stream().wait_stream(side)
    with torch.no_grad():
        for parameter, value in zip(step.model.parameters(), before, strict=True):
            parameter.copy_(value)
    graph = npu.NPUGraph()
    with npu.graph(graph):
        loss = step()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return replay


def refuse_a_capture(step: Step) -> None:
    """Reading a value while capturing is refused; the device works on."""
    npu: Any = torch.npu  # type: ignore[attr-defined]
    try:
        with npu.graph(npu.NPUGraph()):
            step.model(step.inputs).sum().item()
    except RuntimeError:
        print((torch.ones(3, device="npu") + 1).sum().item())


if __name__ == "__main__":
    device = sys.argv[1]
    if device == "npu":
        import torch_npu  # noqa: F401  registers the device
    step = Step(device)
    run = captured(step) if device == "npu" else step
    for _ in range(6):
        step.inputs.copy_(torch.randn(6, 8))
        step.targets.copy_(torch.randn(6, 4))
        print(f"{run().item():.9f}")
    if device == "npu":
        refuse_a_capture(step)
