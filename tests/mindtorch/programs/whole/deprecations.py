import torch, sys, warnings

with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    torch.ones(2, 3, 4).T
    torch.nn.functional.sigmoid(torch.ones(1))
    torch.nn.functional.softmax(torch.ones(2, 2))
    torch.range(0, 3)
    torch.ones(2).storage()
    torch.nn.MSELoss()(torch.ones(2, 1), torch.ones(2))
    torch.meshgrid(torch.ones(2), torch.ones(2))
    torch.nn.KLDivLoss()(torch.ones(2), torch.ones(2))
    torch.optim.lr_scheduler.StepLR(
        torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1), 1
    ).step()
    torch.floor_divide(torch.ones(1), 2)
    torch.norm(torch.ones(2))
    torch.tensor(torch.ones(2))
    torch.qr(torch.eye(2))
    torch.nn.Transformer(4, 1, 1, 1, 4)
    torch.from_numpy(__import__("numpy").ones(2))
    torch.lu(torch.eye(2))
    torch.symeig if hasattr(torch, "symeig") else None
print([x.category.__name__ for x in w])
print([str(x.message)[:50] for x in w])
