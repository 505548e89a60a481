import torch, sys
from torch.optim import Optimizer

dev = sys.argv[1]


class Lion(Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), wd=0.0):
        if lr <= 0:
            raise ValueError("bad lr")
        super().__init__(params, dict(lr=lr, betas=betas, wd=wd))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s["m"] = torch.zeros_like(p)
                b1, b2 = g["betas"]
                p.mul_(1 - g["lr"] * g["wd"]).add_(
                    s["m"].mul(b1).add(p.grad, alpha=1 - b1).sign_(), alpha=-g["lr"]
                )
                s["m"].lerp_(p.grad, 1 - b2)
        return loss


torch.manual_seed(8)
m = torch.nn.Linear(3, 1).to(dev)
x = torch.randn(5, 3).to(dev)
o = Lion(m.parameters(), wd=0.1)
sched = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.5**e)


def closure():
    o.zero_grad()
    l = m(x).pow(2).mean()
    l.backward()
    return l


for _ in range(3):
    print(o.step(closure))
    sched.step()
    print(sched.get_last_lr())
print(o)
print(o.state_dict()["param_groups"])
print(m.weight)
try:
    Lion(m.parameters(), lr=0)
except ValueError as e:
    print(e)
