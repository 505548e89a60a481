"""What optimizers, schedulers, distributions and small objects print is what torch prints."""

import re

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

P = "[torch.nn.Parameter(torch.ones(2, 3))]"
GROUPS = f"[dict(params={P}, lr=0.1), dict(params=[torch.ones(1, requires_grad=True)])]"
OPTIMIZERS = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "RMSprop", "Rprop", "SGD")
SCHEDULERS = {
    "StepLR": "2", "LambdaLR": "lambda e: 1", "MultiplicativeLR": "lambda e: 1",
    "OneCycleLR": "0.1, 10", "CosineAnnealingLR": "3", "ReduceLROnPlateau": "",
}  # fmt: skip
OTHERS = (
    "torch.distributions.GeneralizedPareto(0.0, 1.0, 0.1).support", "torch.Generator()",
    "torch.no_grad()", "torch.enable_grad()", "torch.autograd.graph.Node",
    "type(torch.ones(2, requires_grad=True).sum().grad_fn)", "torch.finfo(torch.bfloat16)",
    "torch.ones(3).untyped_storage()", "torch.ones(2, 2).max(0)", "torch.linalg.qr(torch.eye(2))",
    "torch.nn.Conv2d(4, 8, 3, stride=2, padding_mode='reflect', bias=False)",
    "torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Tanh()])",
    "torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))",
    "torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2), 1.0), 1)",
)  # fmt: skip

EMPTY = [
    f"torch.ones({shape}, dtype=torch.{dtype}, device={device!r})"
    for shape in ("0", "(2, 0)", "2")
    for dtype in ("bool", "int64", "int32", "float32", "float64", "complex64", "complex128")
    for device in ("cpu", "meta")
]


def printed(library, code):
    library.manual_seed(0)
    text = repr(eval(code, {"torch": library}))
    return re.sub(r"0x[0-9a-f]+", "0x", text).replace("mindtorch", "torch")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_of_several_groups(name):
    code = f"torch.optim.{name}({GROUPS}, lr=0.01)"
    assert printed(mindtorch, code) == printed(torch, code)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_states_of_schedulers_in_order(name):
    optimizer = f"torch.optim.SGD({P}, lr=0.1)"
    code = f"list(torch.optim.lr_scheduler.{name}({optimizer}, {SCHEDULERS[name]}).state_dict())"
    assert printed(mindtorch, code) == printed(torch, code)


@pytest.mark.parametrize("code", OTHERS)
def test_small_objects(code):
    assert printed(mindtorch, code) == printed(torch, code)


@pytest.mark.parametrize("code", EMPTY)
def test_tensors_without_values_tell_their_dtype(code):
    assert printed(mindtorch, code) == printed(torch, code)
