"""What type checkers accept of torch's names, and what they refuse: an ignore that is not needed is
an error of mypy's strict mode. Nothing here is run."""

import mindtorch as torch
from mindtorch import nn

x = torch.ones(2, 2)
total: torch.Tensor = x.reshape(4).reshape((2, 2)).sum(dim=0)
total.backward()
count: int = torch.add(x, x)  # type: ignore[assignment]
x.reshape("a")  # type: ignore[arg-type]
x.bacward()  # type: ignore[attr-defined]
torch.matmul(x)  # type: ignore[call-arg]
layers: list[nn.Module] = [nn.MaxPool2d(2), nn.ZeroPad2d(1), nn.Tanh()]
nn.Linear("a", 2)  # type: ignore[arg-type]
nn.NoSuchLayer()  # type: ignore[attr-defined]
