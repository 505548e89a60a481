"""Edges, saved tensors, hooks, optimizers and schedules: what programs see of them is torch's."""

import pytest

import mindtorch
from tests.mindtorch.nn.test_misuse_agreement import outcome

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

CASES = """
y=x()*2; t.autograd.grad(t.autograd.graph.get_gradient_edge(y), x(), t.ones(1,2), allow_unused=True)
a=x(); y=(a*2).sum(); t.autograd.grad(edge(y), edge(a))
a=x(); y=(a*2).sum(); t.autograd.grad(y, [edge(a), a])
a=x(); y=(a*2).sum(); t.autograd.backward(edge(y)); a.grad
a=x(); y=a*2; t.autograd.grad(edge(y), a)
edge(z(2))
a=x(); t.autograd.grad((a*2).sum(), a, materialize_grads=True, allow_unused=False)
a=x(); y=a*a; y.grad_fn._raw_saved_self.register_hooks(lambda v: v*2, lambda v: v); y.sum().backward(); a.grad
a=x(); y=a.exp(); y.grad_fn._raw_saved_result.register_hooks(lambda v: v*2, lambda v: v); y.sum().backward(); a.grad
a=x(); y=a*a; r=y.grad_fn._raw_saved_self; r.register_hooks(lambda v: v, lambda v: v); r.register_hooks(lambda v: v, lambda v: v)
a=x(); y=a*a; y.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: 3); y.sum().backward()
a=x(); y=a*a; y.sum().backward(); y.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: v)
t.autograd.graph.increment_version(3)
x().register_hook(lambda g: g)
s=x().as_subclass(S); (s.is_leaf, s.grad_fn, s._is_view(), (s*2).grad_fn)
s=z(2).as_subclass(S); (s.is_leaf, s.grad_fn, s._is_view())
o=t.optim.SGD(nn.Linear(2,1).named_parameters()); o.add_param_group({"params": [P(z(1))]})
o=t.optim.SGD([P(z(1))]); o.register_step_pre_hook(lambda *a: show(len(a[1]))); o.step()
o=t.optim.SGD([P(z(1))]); o.register_step_pre_hook(lambda *a: 3); o.step()
t.optim.SGD([P(z(1))]).step(foo=1)
t.optim.Adam([P(z(1))], betas=(0, 0.9))
t.optim.Adafactor([P(z(1))], weight_decay=-1.)
t.optim.Adafactor([P(z(1))], lr=t.ones(2))
"S.step" in t.optim.SGD.__dict__, t.optim.SGD.step.__qualname__
t.optim.lr_scheduler.MultiplicativeLR(t.optim.SGD([P(z(1))]), 3)
t.optim.lr_scheduler.CyclicLR(3, 0.1, 1.)
t.optim.lr_scheduler.OneCycleLR(3, 1.)
s=t.optim.lr_scheduler.StepLR(t.optim.SGD([P(z(1))]), 2); (s, isinstance(s, t.optim.lr_scheduler._LRScheduler))
o=t.optim.SGD([P(z(1))]); L=t.optim.lr_scheduler; L.SequentialLR(o, [L.ConstantLR(o), L.ConstantLR(o)], [1]).step(3)
""".strip().splitlines()


@pytest.mark.parametrize("text", CASES)
def test_programs_see_what_torch_shows(text):
    def both(t):
        more = {"S": type("S", (t.Tensor,), {}), "P": t.nn.Parameter}
        return outcome(t, text, edge=t.autograd.graph.get_gradient_edge, **more)

    assert both(mindtorch) == both(torch)
