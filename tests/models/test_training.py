"""An MLP, a CNN with batch norm and a GPT train for 20 steps to torch's losses."""

from typing import Any

import numpy as np
import pytest
from networks import cnn, gpt, mlp

import mindtorch

torch: Any = pytest.importorskip("torch", reason="torch is the oracle of these tests")

STEPS = 20


def numbers(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def labels(high: int, *shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape)


def adamw(t: Any, model: Any) -> tuple[Any, Any]:
    optimizer = t.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = t.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS + 1)
    return optimizer, schedule


def sgd(t: Any, model: Any) -> tuple[Any, Any]:
    optimizer = t.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    return optimizer, t.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


CASES: dict[str, tuple[Any, Any, np.ndarray, np.ndarray]] = {
    "mlp": (mlp, adamw, numbers(STEPS, 16, 12, seed=1), labels(5, STEPS, 16, seed=2)),
    "cnn": (cnn, sgd, numbers(STEPS, 8, 3, 12, 12, seed=3), labels(4, STEPS, 8, seed=4)),
    "gpt": (gpt, adamw, labels(37, STEPS, 4, 16, seed=5), labels(37, STEPS, 4, 16, seed=6)),
}


def train(t: Any, model: Any, case: str, device: str) -> list[float]:
    """The losses of STEPS steps, gradients clipped."""
    _, optimizer_of, inputs, targets = CASES[case]
    optimizer, schedule = optimizer_of(t, model)
    losses = []
    model.train()
    for x, y in zip(inputs, targets, strict=True):
        logits = model(t.from_numpy(x.copy()).to(device))
        target = t.from_numpy(y.copy()).to(device).reshape(-1)
        loss = t.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), target)
        optimizer.zero_grad()
        loss.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(params=["cpu", "npu"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "npu" and not mindtorch.npu.is_available():
        pytest.skip("no NPU and no simulator install is there")
    return str(request.param)


@pytest.mark.parametrize("case", list(CASES))
def test_model_trains_to_torchs_losses(case: str, device: str) -> None:
    torch.manual_seed(0)
    theirs, mine = CASES[case][0](torch), CASES[case][0](mindtorch)
    state = {k: mindtorch.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert repr(mine.load_state_dict(state)) == "<All keys matched successfully>"
    mine.to(device)
    expected = train(torch, theirs, case, "cpu")
    found = train(mindtorch, mine, case, device)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert expected[-1] != pytest.approx(expected[0], rel=1e-3)
    for (name, a), (_, b) in zip(mine.named_buffers(), theirs.named_buffers(), strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)
