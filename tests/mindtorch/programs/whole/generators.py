import torch, sys

g = torch.Generator().manual_seed(42)
s = g.get_state()
a = torch.rand(3, generator=g)
g.set_state(s)
print(torch.equal(a, torch.rand(3, generator=g)), s.shape, s.dtype, g.initial_seed(), g.device)
torch.manual_seed(5)
st = torch.get_rng_state()
print(torch.randint(0, 10, (5,)), torch.randperm(6))
torch.set_rng_state(st)
print(torch.randint(0, 10, (5,)))
with torch.random.fork_rng():
    torch.manual_seed(1)
    print(torch.rand(2))
print(
    torch.rand(2),
    torch.empty(3).exponential_(2.0),
    torch.bernoulli(torch.full((4,), 0.3)),
    torch.normal(0.0, 1.0, (2,)),
    torch.seed() > 0,
    torch.initial_seed() >= 0,
)
torch.manual_seed(9)
print(
    torch.nn.Linear(2, 2).weight,
    torch.nn.init.kaiming_uniform_(torch.empty(2, 2)),
    torch.nn.init.orthogonal_(torch.empty(2, 2)).abs().sum() > 0,
)
print(
    torch.nn.functional.dropout(torch.ones(8), 0.5),
    torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 5, replacement=True),
)
