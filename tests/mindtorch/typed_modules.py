"""What type checkers know of torch's modules by name alone, without an import of each: as an `Any`
they would refuse nothing, and each ignore would be one too many. Nothing here is run."""

import mindtorch as torch

torch.nn.Linear("a", 2)  # type: ignore[arg-type]
torch.nn.NoSuchLayer()  # type: ignore[attr-defined]
torch.optim.NoSuchOptimizer()  # type: ignore[attr-defined]
weights: torch.nn.Module = torch.nn.Linear(2, 2)
