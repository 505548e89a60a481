import torch, sys
import torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(1)
policy = torch.nn.Linear(4, 7).to(dev)
ref = torch.nn.Linear(4, 7).to(dev)
ref.load_state_dict(policy.state_dict())
state = torch.randn(3, 4).to(dev)
actions = torch.randint(0, 7, (3, 5)).to(dev)
rewards = torch.randn(3, 5).to(dev)
adv = (rewards - rewards.mean(-1, keepdim=True)) / (rewards.std(-1, keepdim=True) + 1e-4)
opt = torch.optim.SGD(policy.parameters(), lr=0.5, momentum=0.9, nesterov=True)
with torch.no_grad():
    old = F.log_softmax(policy(state), -1).gather(1, actions)
for _ in range(4):
    logp = F.log_softmax(policy(state), -1).gather(1, actions)
    ratio = (logp - old).exp()
    surr = torch.minimum(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    with torch.no_grad():
        rl = F.log_softmax(ref(state), -1).gather(1, actions)
    kl = (rl - logp).exp() - (rl - logp) - 1
    loss = -(surr - 0.04 * kl).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    n = torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    opt.step()
    print(f"{loss.item():+.5f} {n.item():.5f} {ratio.mean().item():.5f}")
print(adv, ratio.detach())
print(opt)
