import torch, sys
from torch.func import (
    vmap,
    grad,
    jacrev,
    jacfwd,
    hessian,
    functional_call,
    vjp,
    jvp,
    stack_module_state,
)

dev = sys.argv[1]
torch.manual_seed(10)
m = torch.nn.Linear(3, 2).to(dev)
x = torch.randn(4, 3).to(dev)
y = torch.randn(4, 2).to(dev)
params = {k: v.detach() for k, v in m.named_parameters()}


def loss(p, a, b):
    return ((functional_call(m, p, (a,)) - b) ** 2).mean()


per = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
print({k: (v.shape, v.sum().item().__round__(4)) for k, v in per.items()})
print(jacrev(torch.sin)(x[0]))
print(jacfwd(lambda t: t * t)(x[0]))
print(hessian(lambda t: (t**4).sum())(x[0]))
out, f = vjp(lambda t: t.exp(), x[0])
print(out, f(torch.ones(3, device=dev)))
print(jvp(torch.cos, (x[0],), (torch.ones(3, device=dev),)))
p, b = stack_module_state([torch.nn.Linear(3, 2).to(dev) for _ in range(3)])
print(vmap(lambda q, a: functional_call(m, q, (a,)), (0, None))(p, x).shape)
print(vmap(torch.dot)(x, x), vmap(lambda t: t.sum(), in_dims=1)(x))
