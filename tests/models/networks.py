"""Three small networks, each written once for torch and mindtorch: `t` is the library."""

import math
from typing import Any


def mlp(t: Any) -> Any:
    """`[N, 12]` → `[N, 5]`, with layer norm and three kinds of activation."""
    nn = t.nn
    return nn.Sequential(
        nn.Linear(12, 32),
        nn.LayerNorm(32),
        nn.GELU(),
        nn.Linear(32, 32),
        nn.SiLU(),
        nn.Linear(32, 16, bias=False),
        nn.ReLU(inplace=True),
        nn.Linear(16, 5),
    )


def cnn(t: Any) -> Any:
    """`[N, 3, 12, 12]` → `[N, 4]`: convolutions with batch norm, a residual block, pooling."""
    nn = t.nn

    class Residual(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels, channels, 3, padding=1, groups=2, bias=False),
                nn.BatchNorm2d(channels),
            )

        def forward(self, x: Any) -> Any:
            return t.relu(x + self.body(x))

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=1, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        Residual(8),
        nn.Conv2d(8, 12, 3, stride=2),
        nn.GroupNorm(3, 12),
        nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    )


def gpt(t: Any, vocabulary: int = 37, width: int = 32, heads: int = 4, layers: int = 2) -> Any:
    """Token indices `[N, T]` → logits `[N, T, vocabulary]`: a decoder with tied embeddings."""
    nn, functional = t.nn, t.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, length, _ = x.shape
            q, k, v = self.qkv(x).split(width, dim=-1)
            q, k, v = (
                part.view(n, length, heads, width // heads).transpose(1, 2) for part in (q, k, v)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(n, length, width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(width)
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(64, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.initialize)

        def initialize(self, module: Any) -> None:
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.1 / math.sqrt(layers))

        def forward(self, index: Any) -> Any:
            places = t.arange(index.shape[1], device=index.device)
            x = self.tokens(index) + self.places(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()
