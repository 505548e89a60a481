import torch, sys
import torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(14)
lp = torch.randn(12, 3, 6).to(dev).requires_grad_()
tgt = torch.tensor([[1, 2, 2, 4], [3, 1, 0, 0], [5, 5, 1, 0]], device=dev)
il, tl = torch.tensor([12, 10, 11]), torch.tensor([4, 2, 3])
l = F.ctc_loss(lp.log_softmax(2), tgt, il, tl, reduction="none", zero_infinity=True)
print(l)
l.sum().backward()
print(lp.grad[:2, 0])
print(lp.grad.abs().sum((1, 2)))
m = torch.nn.CTCLoss(blank=0)
print(m, m(lp.log_softmax(2), tgt, il, tl))
best = lp.argmax(2).t()
for row in best:
    print(torch.unique_consecutive(row).tolist())
