import torch, sys
import torch.nn as nn

dev = sys.argv[1]
torch.manual_seed(0)


class LoRA(nn.Module):
    def __init__(self, base, r=2, alpha=4):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.a.T @ self.b.T) * self.scale


net = nn.Sequential(LoRA(nn.Linear(6, 5)), nn.Tanh(), LoRA(nn.Linear(5, 3))).to(dev)
x, y = torch.randn(8, 6).to(dev), torch.randint(0, 3, (8,)).to(dev)
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.05)
for step in range(6):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.4f}")
print(net)
print({k: tuple(v.shape) for k, v in net.state_dict().items()})
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
print(net(x)[:2])
