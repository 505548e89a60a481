import torch, sys

nt = torch.nested.nested_tensor(
    [torch.arange(4.0).reshape(2, 2), torch.ones(3, 2)], layout=torch.jagged
)
print(nt.is_nested, nt.shape[0], nt.offsets(), nt.values().shape)
print((nt * 2).values()[:2])
print([t.shape for t in nt.unbind()])
print(torch.nested.to_padded_tensor(nt, 0.0))
print(torch.nn.functional.linear(nt, torch.eye(2)).values()[:1])
