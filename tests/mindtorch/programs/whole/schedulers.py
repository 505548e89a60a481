import torch, warnings
from torch.optim import lr_scheduler as S

warnings.simplefilter("ignore")


def run(mk, n=8):
    p = torch.nn.Parameter(torch.zeros(1))
    o = torch.optim.SGD([p], lr=1.0)
    s = mk(o)
    out = []
    for i in range(n):
        o.step()
        s.step(*([1.0 / (i + 1)] if isinstance(s, S.ReduceLROnPlateau) else []))
        out.append(round(o.param_groups[0]["lr"], 5))
    return out


for mk in (
    lambda o: S.StepLR(o, 2, 0.5),
    lambda o: S.MultiStepLR(o, [2, 5]),
    lambda o: S.CosineAnnealingLR(o, 4),
    lambda o: S.OneCycleLR(o, 1.0, total_steps=9),
    lambda o: S.CosineAnnealingWarmRestarts(o, 3),
    lambda o: S.LinearLR(o),
    lambda o: S.PolynomialLR(o, 4),
    lambda o: S.ExponentialLR(o, 0.9),
    lambda o: S.CyclicLR(o, 0.1, 1.0, 2),
    lambda o: S.ReduceLROnPlateau(o, patience=1, threshold=1.0),
    lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.5)], [3]),
    lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.5, 3), S.ExponentialLR(o, 0.9)]),
):
    print(run(mk))
o = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.1)
s = S.StepLR(o, 3)
print(s.state_dict(), o.state_dict())
