"""Trains a small network on the device that argument 1 names, and prints its losses."""

import sys

import torch


def losses(device: str) -> list[float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32),
        torch.nn.LayerNorm(32), torch.nn.GELU("tanh"), torch.nn.Linear(32, 4),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(64, 16).to(device), torch.randint(0, 4, (64,)).to(device)
    seen = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


if __name__ == "__main__":
    if sys.argv[1] == "npu":
        import torch_npu  # noqa: F401  registers the device
    print(*losses(sys.argv[1]))
