import torch, sys

dev = sys.argv[1]
torch.manual_seed(20)
m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)).to(dev)
x = torch.randn(3, 4).to(dev)
with torch.autocast(dev, dtype=torch.bfloat16):
    h = m[0](x)
    n = m[1](h)
    out = m[2](n)
    l = torch.nn.functional.mse_loss(out, torch.zeros_like(out))
    print(
        h.dtype, out.dtype, l.dtype, (h @ h.T).dtype, (h + x).dtype, torch.is_autocast_enabled(dev)
    )
    with torch.autocast(dev, enabled=False):
        print(m[0](x).dtype)
l.backward()
print(m[0].weight.grad.dtype, l.item().__round__(2))
s = torch.amp.GradScaler(dev, init_scale=8.0, enabled=False)
print(s.state_dict(), s.get_scale(), s.scale(torch.ones(1)))
h = torch.tensor([65504.0, 1e-8, 3.14159], device=dev).half()
print(h, h * 2, h.float(), h.to(torch.bfloat16))
