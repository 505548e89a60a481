import torch, sys
import torch.fx as fx


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.relu(self.lin(x)) + x.mean()


g = fx.symbolic_trace(M())
print(g.graph)
print(g.code)
print([(n.op, n.name) for n in g.graph.nodes])
for n in g.graph.nodes:
    if n.target is torch.relu:
        n.target = torch.tanh
g.recompile()
print(g(torch.ones(1, 2)).shape)
s = torch.jit.script(M()) if False else torch.jit.trace(M(), torch.ones(1, 2))
print(s(torch.ones(1, 2)).shape)
c = torch.compile(M(), backend="eager")
print(type(c).__name__, list(c.state_dict()))
