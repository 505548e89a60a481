"""Numbers before tensors, as programs of torch's first years wrote them."""

import warnings

import pytest
from agreement import agree

CALLS = """
t.add(o(2), 2, o(2))
o(2).add(2, o(2))
o(2).add_(-0.5, o(2))
t.sub(o(2), 2, o(2))
o(2).sub_(2, o(2))
t.addcmul(o(2), 2, o(2), o(2))
t.addcdiv(o(2), 0.5, o(2), o(2))
o(2).addcmul_(2, o(2), o(2))
o(2).mul_(0.9).addcdiv_(-0.1, o(2), o(2))
t.addmm(2, o(2, 2), o(2, 2), o(2, 2))
t.addmm(2, o(2, 2), 3, o(2, 2), o(2, 2))
o(2, 2).addmm(2, 3, o(2, 2), o(2, 2))
o(2, 2).addmm_(2, o(2, 2), o(2, 2))
t.baddbmm(2, o(1, 2, 2), 3, o(1, 2, 2), o(1, 2, 2))
t.addbmm(2, o(2, 2), 3, o(1, 2, 2), o(1, 2, 2))
t.addmv(2, o(2), o(2, 2), o(2))
t.addr(2, o(2, 2), 3, o(2), o(2))
o(2).add(2, 3, o(2))
o(2).addcmul(o(2), o(2), o(2))
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_older_signatures_mean_what_they_did(call):
    def run(t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(call, {"t": t, "o": lambda *s: t.ones(s)})

    agree(run, text=False)
