"""EMA by hand, AveragedModel, SWA with SWALR and update_bn."""
import copy

import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "npu" if hasattr(torch, "npu") and torch.npu.is_available() else "cpu"


class EMA:
    """Shadow weights with warmup; swap in and out for evaluation."""

    def __init__(self, model, decay=0.9, warmup=True):
        self.decay, self.warmup, self.n = decay, warmup, 0
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.backup = None

    @torch.no_grad()
    def update(self, model):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n)) if self.warmup else self.decay
        for k, v in model.state_dict().items():
            if v.dtype.is_floating_point:
                self.shadow[k].mul_(d).add_(v, alpha=1 - d)
            else:
                self.shadow[k].copy_(v)

    def __enter__(self):
        self.backup = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.shadow)

    def __exit__(self, *exc):
        self.model.load_state_dict(self.backup)

    def on(self, model):
        self.model = model
        return self


net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
X = torch.randn(64, 6)
y = (X[:, 0] * X[:, 1] > 0).long()
net, X, y = net.to(device), X.to(device), y.to(device)
loader = DataLoader(TensorDataset(X, y), batch_size=16)

opt = torch.optim.SGD(net.parameters(), lr=0.2)
ema = EMA(net)
ema2 = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
swa = AveragedModel(net)
swa_sched = SWALR(opt, swa_lr=0.05, anneal_epochs=3, anneal_strategy="cos")
for epoch in range(8):
    net.train()
    for xb, yb in loader:
        loss = F.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
        ema2.update_parameters(net)
    if epoch >= 3:
        swa.update_parameters(net)
        swa_sched.step()
    if epoch % 2:
        print(f"epoch {epoch} loss {loss.item():.4f} lr {opt.param_groups[0]['lr']:.4f} n_avg {int(swa.n_averaged)}")

net.eval()
with torch.no_grad():
    raw = F.cross_entropy(net(X), y).item()
    with ema.on(net):
        inside = F.cross_entropy(net(X), y).item()
    after = F.cross_entropy(net(X), y).item()
    print(f"raw {raw:.4f} ema {inside:.4f} restored {after == raw}")
    ema2.eval()
    print(f"AveragedModel ema {F.cross_entropy(ema2(X), y).item():.4f} steps {ema2.n_averaged.item()} {ema2.n_averaged.dtype}")

print("swa buffers follow the source before update_bn:", torch.equal(swa.module[1].running_mean, net[1].running_mean))
update_bn(loader, swa, device=device)
swa.eval()
with torch.no_grad():
    print(f"swa {F.cross_entropy(swa(X), y).item():.4f} tracked {swa.module[1].num_batches_tracked.item()} momentum {swa.module[1].momentum}")
print("keys", list(swa.state_dict())[:3], "...", len(swa.state_dict()))
print("int buffer copied, not averaged:", ema.shadow["1.num_batches_tracked"].item())
