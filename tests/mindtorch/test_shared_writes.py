"""Writes by index, in place or to `out=`, refuse what shares their memory, as torch does."""

import pytest
from agreement import agree

WRITES = """
v.put_(i, v)
v.put_(i, v[:], True)
v.scatter_(0, i, v)
v.scatter_(0, i, v[:])
v.scatter_add_(0, i, v)
v.scatter_reduce_(0, i, v, 'sum')
v.index_add_(0, i, v)
v.index_copy_(0, i, v)
v.index_put_((i,), v)
v.index_reduce_(0, i, v, 'amax')
v.masked_fill_(v > 0, v[0])
v.index_fill_(0, i, v[0])
v.masked_scatter_(v > 0, v)
torch.gather(v, 0, i, out=v)
torch.take(v, i, out=v)
torch.index_select(v, 0, i, out=v)
torch.cat((v,), out=v)
torch.where(v > 0, v, v, out=v)
v.scatter_(0, i, v.clone())
v.scatter_(0, i, v.flip(0))
v.index_add_(0, i, v + 0)
v.copy_(v)
v.lerp_(v, 0.5)
""".strip().splitlines()


@pytest.mark.parametrize("line", WRITES)
def test_writes_refuse_what_shares_their_memory(line):
    def run(t):
        names = {"torch": t, "v": t.arange(4.0), "i": t.tensor([0, 1, 2, 3])}
        for _ in range(2):  # the second time by the plan that the first has left
            exec(line, names)
        return names["v"]

    agree(run)


def test_a_plan_of_separate_tensors_refuses_shared_ones_later():
    def run(t):
        v, at = t.arange(4.0), t.tensor([3, 2, 1, 0])
        v.scatter_(0, at, t.arange(4.0))
        return v.scatter_(0, at, v)

    agree(run)
