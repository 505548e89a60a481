"""Trains a one-layer causal language model on the device of argument 1, and prints its losses."""

import sys

import torch
from torch import nn


class Model(nn.Module):
    """Token ids [N, T] → scores [N, T, 50]."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(50, 32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 50)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(later, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, 32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        x = x + self.attention(self.norm(x))
        return self.head(x + self.mlp(x))


def losses(device: str) -> list[float]:
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = torch.randint(0, 50, (8, 17)).to(device)
    seen = []
    for _ in range(10):
        optimizer.zero_grad()
        scores = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen.append(loss.item())
    return seen


if __name__ == "__main__":
    if sys.argv[1] == "npu":
        import torch_npu  # noqa: F401  registers the device
    print(*losses(sys.argv[1]))
