"""What rows say that a call costs is what torch's own counter says."""

import pytest

import mindtorch
from mindtorch.ops.costs import lookup
from mindtorch.ops.spec import OPS
from mindtorch.utils import flop_counter
from mindtorch.utils.flop_counter import FlopCounterMode

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
oracle = pytest.importorskip("torch.utils.flop_counter", reason="the oracle is torch 2.13")


def listed(t):
    class Listed(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = t.nn.ModuleList([t.nn.Linear(3, 3), t.nn.ModuleList([t.nn.Linear(3, 3)])])

        def forward(self, x):
            return self.layers[1][0](self.layers[0](x))

    return Listed()


CALLS = {
    "mm": lambda t: t.mm(t.ones(2, 3), t.ones(3, 5)),
    "bmm": lambda t: t.bmm(t.ones(4, 2, 3), t.ones(4, 3, 5)),
    "addmm": lambda t: t.addmm(t.ones(5), t.ones(2, 3), t.ones(3, 5)),
    "baddbmm": lambda t: t.baddbmm(t.ones(1), t.ones(4, 2, 3), t.ones(4, 3, 5)),
    "matmul": lambda t: t.ones(7, 1, 2, 3) @ t.ones(4, 3, 5),
    "matmul by name": lambda t: t.matmul(input=t.ones(2, 3), other=t.ones(3, 5)),
    "linear": lambda t: t.nn.functional.linear(t.ones(2, 7, 3), t.ones(5, 3), t.ones(5)),
    "grouped": lambda t: t.conv2d(t.ones(2, 4, 8, 9), t.ones(6, 2, 3, 3), None, 2, 1, 1, 2),
    "conv1d": lambda t: t.conv1d(t.ones(2, 4, 8), t.ones(6, 4, 3), t.ones(6)),
    "transposed": lambda t: t.conv_transpose2d(t.ones(2, 4, 5, 5), t.ones(4, 3, 3, 2), None, 2),
    "add": lambda t: t.ones(9) + t.ones(9),
    "gather": lambda t: t.gather(t.ones(9), 0, t.zeros(3, dtype=t.int64)),
    "vector": lambda t: t.ones(2, 3) @ t.ones(3),
    "batch": lambda t: t.ones(2, 3) @ t.ones(4, 3, 5),
    "folded": lambda t: t.ones(4, 2, 3) @ t.ones(3, 5),
    "einsum": lambda t: t.einsum("ij,jk->ik", t.ones(2, 3), t.ones(3, 5)),
    "backward": lambda t: (
        (t.ones(2, 3, requires_grad=True) @ t.ones(3, 5, requires_grad=True)).sum().backward()
    ),
    "layers": lambda t: (
        t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Linear(4, 2, bias=False))(
            t.ones(5, 3, requires_grad=True)
        )
        .sum()
        .backward()
    ),
    "list of layers": lambda t: [
        t.nn.ModuleList([t.nn.Sequential(t.nn.Linear(3, 3))])[0](t.ones(2, 3)),
        listed(t)(t.ones(2, 3, requires_grad=True)).sum().backward(),
    ],
    "first layer": lambda t: t.nn.Sequential(t.nn.Linear(3, 4))(t.ones(2, 5, 3)).sum().backward(),
    "convolution": lambda t: (
        t.nn.Conv2d(2, 3, 3)(t.ones(2, 2, 5, 5, requires_grad=True)).sum().backward()
    ),
    "heads": lambda t: t.nn.MultiheadAttention(4, 2)(*[t.ones(3, 2, 4)] * 3)[0].sum().backward(),
}


FORMULAS = """
mm_flop((2, 3), (3, 5))|addmm_flop((5,), (2, 3), (3, 5))|bmm_flop((4, 2, 3), (4, 3, 5))
baddbmm_flop((1,), (4, 2, 3), (4, 3, 5))|conv_flop_count([2, 3, 8], [4, 3, 3], [2, 4, 6])
conv_flop_count([2, 4, 6], [4, 3, 3], [2, 3, 8], transposed=True)
sdpa_flop_count((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))
sdpa_backward_flop_count((2, 3, 4, 7), (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7))
sorted(str(f) for f in flop_registry if str(f) in ("aten.mm", "aten.convolution_backward"))
mm_flop(ones(2, 3), ones(3, 5), out_val=ones(2, 5))
"""


@pytest.mark.parametrize("call", "|".join(FORMULAS.strip().splitlines()).split("|"))
def test_formulas_give_what_torchs_do(call):
    ours = eval(call, vars(flop_counter) | {"ones": mindtorch.ones})
    assert ours == eval(call, vars(oracle) | {"ones": torch.ones})


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_operations_are_torchs_by_module_and_operator(call):
    def counts(library, mode):
        with mode(display=False) as counter:
            call(library)
        assert counter.get_total_flops() == sum(counter.flop_counts["Global"].values())
        return {
            module: {str(operator): n for operator, n in flops.items()}
            for module, flops in counter.get_flop_counts().items()
        }

    assert counts(mindtorch, FlopCounterMode) == counts(torch, oracle.FlopCounterMode)


def test_programs_count_their_own_operators():
    def total(library, mode):
        mapping = {library.ops.aten.sin: lambda x, out_shape: 7 * x[0] + out_shape[1]}
        with mode(display=False, custom_mapping=mapping) as counter:
            library.ones(3, 2).sin()
        return counter.get_total_flops()

    assert total(mindtorch, FlopCounterMode) == total(torch, oracle.FlopCounterMode) == 23


def test_the_table_shows_modules_to_a_depth():
    layers = mindtorch.nn.Sequential(mindtorch.nn.Linear(3, 4))
    with FlopCounterMode(display=False) as counter:
        layers(mindtorch.ones(1, 3))
    assert [line.split()[0] for line in counter.get_table(1).splitlines()[2:]] == [
        "Sequential",
        "-",
    ]
    assert "Sequential.0" in counter.get_table()


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_attention_counts_what_torch_counts(dropout):
    """Both products; nothing for torch's fused kernel of the cpu, which it does not know."""

    def total(library, mode):
        q, k, v = (library.ones(2, 4, n, 8) for n in (5, 6, 6))
        with mode(display=False) as counter:
            library.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        return counter.get_total_flops()

    expected = 2 * (2 * 4 * 5 * 6 * 8) * 2 if dropout else 0
    assert total(mindtorch, FlopCounterMode) == total(torch, oracle.FlopCounterMode) == expected


def test_a_fused_product_sums_over_its_inner_dimension():
    bias, a, b = (mindtorch.ones(*shape) for shape in ((2, 4), (2, 3), (3, 4)))
    args = {"self": bias, "mat1": a, "mat2": b}
    assert OPS["addmm"].testing.cost(args, [bias]).flops == 2 * 2 * 3 * 4


def test_of_a_table_only_what_is_looked_up_is_read():
    table, index, rows = (mindtorch.ones(*shape) for shape in ((1000, 4), (3,), (3, 4)))
    assert OPS["embedding"].testing.cost is lookup
    assert lookup({"weight": table, "indices": index}, [rows]).nbytes == 2 * 48 + 12
