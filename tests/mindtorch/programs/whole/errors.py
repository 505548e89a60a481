import torch, sys

dev = sys.argv[1]
a, b = torch.ones(2, 3, device=dev), torch.ones(4, 5, device=dev)
for f in (
    lambda: a + b,
    lambda: a @ b,
    lambda: a.view(5),
    lambda: a[5],
    lambda: a.foo,
    lambda: torch.cat([a, b]),
    lambda: a.reshape(-1, 4),
    lambda: torch.nn.Linear(2, 2).to(dev)(b),
    lambda: a.item(),
    lambda: torch.zeros(-1),
    lambda: a.backward(),
    lambda: torch.tensor([1, [2]]),
    lambda: a.sum(5),
    lambda: torch.nn.functional.cross_entropy(a, torch.ones(3, device=dev).long()),
    lambda: torch.load("/nonexistent.pt"),
    lambda: torch.device("foo"),
    lambda: torch.nn.Module()(1),
    lambda: torch.nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2)}),
    lambda: a.squeeze(7),
    lambda: torch.stack([]),
    lambda: a.expand(3, 3),
    lambda: torch.arange(0, 5, 0),
    lambda: torch.linalg.solve(a, b),
    lambda: torch.einsum("ij,jk", a, b),
    lambda: a.numpy().foo if dev == "cpu" else None.foo,
    lambda: a.add_(b),
    lambda: torch.ones(2, requires_grad=True).add_(1),
    lambda: torch.optim.SGD([], lr=1),
    lambda: torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 2, 5, 5)),
    lambda: a.to("nowhere"),
    lambda: torch.randn(2, "a"),
    lambda: int(a),
    lambda: bool(a),
    lambda: torch.tensor("x"),
):
    try:
        print("ok", f())
    except Exception as e:
        print(type(e).__name__)
