import torch, sys

dev = sys.argv[1]
torch.manual_seed(23)
for t in (
    torch.tensor(3),
    torch.tensor([1.5, float("nan"), float("inf")]),
    torch.arange(1200),
    torch.randn(3, 4) * 1e5,
    torch.tensor([1e-8, 1.0]),
    torch.zeros(0, 3),
    torch.tensor([True, False]),
    torch.tensor([1 + 2j]),
    torch.ones(2, 3, dtype=torch.float16),
    torch.arange(24.0).reshape(2, 3, 4),
    torch.tensor([[0.1, 100.0]]),
    torch.ones(2, dtype=torch.int8),
    torch.randn(2, requires_grad=True) * 2,
):
    print(t.detach().to(dev), t.requires_grad)
torch.set_printoptions(precision=2, sci_mode=False, linewidth=40)
print(torch.randn(2, 9).to(dev))
torch.set_printoptions(profile="default")
print(
    f"{torch.tensor(2.5):.3f} {torch.tensor(7):d}",
    torch.Size([1, 2]),
    torch.float32,
    torch.device("cpu"),
    torch.strided,
)
print(torch.nn.Transformer(4, 2, 1, 1, 8))
print(torch.nn.ModuleDict({"a": torch.nn.ReLU(), "b": torch.nn.Conv1d(1, 2, 3)}))
print(
    torch.max(torch.tensor([[1, 5], [7, 2]]), 1),
    torch.tensor([1, 2]).size(),
    torch.iinfo(torch.int16),
)
