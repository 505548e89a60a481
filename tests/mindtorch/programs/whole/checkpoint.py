import torch, sys, io, copy, pickle

dev = sys.argv[1]
torch.manual_seed(24)
m = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False), torch.nn.BatchNorm1d(3)).to(dev)
o = torch.optim.RMSprop(m.parameters(), lr=0.01, momentum=0.5, centered=True)
x = torch.randn(5, 3).to(dev)
for _ in range(2):
    o.zero_grad()
    (m(x) - x).square().sum().backward()
    o.step()
buf = io.BytesIO()
torch.save({"m": m.state_dict(), "o": o.state_dict(), "rng": torch.get_rng_state(), "e": 3}, buf)
buf.seek(0)
c = torch.load(buf, map_location="cpu", weights_only=True)
print(list(c), list(c["m"]), c["rng"].shape, c["o"]["param_groups"])
m2 = copy.deepcopy(m)
print(m2.load_state_dict(c["m"]), torch.equal(m2[0].weight, m[0].weight))
m3 = pickle.loads(pickle.dumps(m.cpu()))
print(m3, m3[1].num_batches_tracked, m3[1].running_mean)
print(m2.load_state_dict({"0.weight": torch.ones(3, 3)}, strict=False))
print(sorted(c["o"]["state"][0]))
from torch.utils.checkpoint import checkpoint

y = x.detach().clone().requires_grad_()
checkpoint(m2, y, use_reentrant=False).sum().backward()
print(y.grad.shape)
