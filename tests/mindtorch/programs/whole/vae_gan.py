import torch, sys
import torch.nn as nn, torch.nn.functional as F
from torch.distributions import Normal, kl_divergence, Independent

dev = sys.argv[1]
torch.manual_seed(12)
enc, dec = nn.Linear(6, 4).to(dev), nn.Linear(2, 6).to(dev)
x = torch.rand(5, 6).to(dev)
eps = torch.randn(5, 2).to(dev)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=0.02, amsgrad=True)
for i in range(3):
    mu, lv = enc(x).chunk(2, -1)
    q = Normal(mu, (0.5 * lv).exp())
    z = mu + q.scale * eps
    rec = F.binary_cross_entropy_with_logits(dec(z), x, reduction="none").sum(-1)
    kl = kl_divergence(
        Independent(q, 1), Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
    )
    loss = (rec + kl).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss, kl.mean())
print(q, q.log_prob(z).sum(), q.entropy().sum())
D = nn.utils.spectral_norm(nn.Linear(6, 1)).to(dev)
print(list(D.state_dict()))
print(F.softplus(-D(x)).mean().grad_fn)
print(torch.sigmoid(dec(z))[0])
