import torch, sys

dev = sys.argv[1]
torch.manual_seed(28)
pred, gt = torch.randint(0, 3, (2, 4, 4)).to(dev), torch.randint(0, 3, (2, 4, 4)).to(dev)
cm = torch.bincount((gt * 3 + pred).flatten(), minlength=9).reshape(3, 3)
iou = cm.diag() / (cm.sum(0) + cm.sum(1) - cm.diag())
print(cm, iou, iou.mean())
boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 2, 2.2]], device=dev)
sc = torch.tensor([0.9, 0.8, 0.7], device=dev)
lt, rb = torch.max(boxes[:, None, :2], boxes[:, :2]), torch.min(boxes[:, None, 2:], boxes[:, 2:])
wh = (rb - lt).clamp(min=0)
inter = wh.prod(-1)
area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
print(inter / (area[:, None] + area - inter))
onehot = torch.nn.functional.one_hot(gt, 3).permute(0, 3, 1, 2).float()
logits = torch.randn(2, 3, 4, 4).to(dev).requires_grad_()
p = logits.softmax(1)
dice = 1 - (2 * (p * onehot).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + 1)
dice.mean().backward()
print(
    dice,
    logits.grad.norm(),
    torch.nn.functional.cross_entropy(
        logits, gt, weight=torch.tensor([1.0, 2, 3], device=dev), ignore_index=1
    ),
)
