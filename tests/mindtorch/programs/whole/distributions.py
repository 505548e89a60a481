import torch, sys
import torch.distributions as D

torch.manual_seed(22)
g = D.Gamma(torch.tensor([1.0, 3.0]), torch.tensor(2.0))
s = g.rsample((3,))
print(s, g.log_prob(s), g)
b = D.Beta(torch.tensor(2.0), torch.tensor(5.0))
print(b.sample((4,)), b.mean, b.entropy())
d = D.Dirichlet(torch.tensor([0.5, 1.0, 2.0]))
x = d.sample()
print(x, d.log_prob(x))
print(D.Poisson(torch.tensor([1.0, 50.0])).sample((3,)))
print(D.Binomial(20, torch.tensor(0.4)).sample((5,)))
m = D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), 0.5))
print(m.sample((3,)), m.log_prob(torch.tensor(0.3)))
t = D.TransformedDistribution(
    D.Normal(0.0, 1.0), [D.SigmoidTransform(), D.AffineTransform(1.0, 2.0)]
)
y = t.sample((2,))
print(y, t.log_prob(y))
mv = D.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
print(mv.sample(), mv.entropy(), mv)
try:
    D.Normal(0.0, -1.0)
except ValueError as e:
    print(str(e)[:60])
print(
    D.kl_divergence(D.Bernoulli(0.3), D.Bernoulli(0.6)),
    D.StudentT(3.0).sample(),
    D.VonMises(torch.tensor(0.0), torch.tensor(2.0)).sample(),
)
