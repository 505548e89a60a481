"""Tools around a program: what their users override, read and pass on is there as in torch."""

from agreement import agree


def test_transforms_of_users_go_back_by_their_inverse():
    def run(t):
        class Cubed(t.distributions.transforms.Transform):
            domain = codomain = t.distributions.constraints.real
            bijective, sign = True, 1

            def _call(self, x):
                return x**3

            def _inverse(self, y):
                return y.sign() * y.abs() ** (1 / 3)

            def log_abs_det_jacobian(self, x, y):
                return (3 * x * x).log()

        cubed, points = Cubed(cache_size=1), t.tensor([0.5, -2.0])
        parts = [cubed, t.distributions.AffineTransform(1.0, 2.0)]
        spread = t.distributions.TransformedDistribution(t.distributions.Normal(0.0, 1.0), parts)
        both = t.distributions.ComposeTransform(parts)
        shown = (
            cubed.inv(points), both.inv(both(points)), spread.log_prob(points), spread.cdf(points),
            spread.icdf(points.abs() / 4), cubed.inv.log_abs_det_jacobian(cubed(points), points),
        )  # fmt: skip
        same = cubed.inv(cubed(points)) is points
        return t.stack(shown).mul(1e4).round(), same, type(cubed.inv).__name__  # to four decimals

    agree(run)


def test_exponential_families_of_users_have_their_entropy():
    def run(t):
        class Rate(t.distributions.ExponentialFamily):
            _mean_carrier_measure = 0

            def __init__(self, rate):
                self.rate = rate
                super().__init__(rate.shape, validate_args=False)

            @property
            def _natural_params(self):
                return (-self.rate,)

            def _log_normalizer(self, x):
                return -(-x).log()

        return Rate(t.tensor([0.5, 3.0])).entropy()

    agree(run)
