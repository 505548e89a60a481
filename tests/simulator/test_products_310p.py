"""Kernels of operators that only the Ascend310P profile has, run in a child with that profile."""

import os
import subprocess
import sys
from typing import Any

import pytest
from kernel_harness import Out

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

PROFILE = "Ascend310P3"
INSIDE = os.environ.get("ACLSIM_SOC", "").startswith(PROFILE)
inside = pytest.mark.skipif(not INSIDE, reason="runs in the child that has the 310P profile")


@pytest.mark.skipif(INSIDE, reason="this is the child")
def test_operators_of_the_310p_profile_pass_in_a_child() -> None:
    environment = {**os.environ, "ACLSIM_SOC": PROFILE}
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", __file__]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout[-3000:]
    assert " passed" in child.stdout


@inside
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_the_two_way_lstm_equals_torch(sim: Any, both: bool, first: bool) -> None:
    torch.manual_seed(0)
    net = torch.nn.LSTM(3, 4, batch_first=first, bidirectional=both)
    weights = [p.detach().half() for p in net.parameters()]
    net = net.half().float()
    x = torch.randn(5, 2, 3).half()
    ways, batch = 2 if both else 1, x.shape[0 if first else 1]
    h, c = torch.randn(ways, batch, 4).half(), torch.randn(ways, batch, 4).half()
    with torch.no_grad():
        y, (hn, cn) = net(x.float(), (h.float(), c.float()))
    outs = [Out(t.half(), tolerance=4e-3) for t in (y, hn, cn)]
    reverse = weights[4:] if both else [None] * 4
    args = (x, h, c, *weights[:4], *reverse)
    sim.check("aclnnBidirectionLSTM", *args, 1, True, first, both, *outs)
    sim.check("aclnnBidirectionLSTMV2", *args, None, 1, True, first, both, False, *outs)


@inside
def test_packed_samples_end_where_their_batch_sizes_say(sim: Any) -> None:
    torch.manual_seed(0)
    net = torch.nn.LSTM(3, 4, bidirectional=True)
    weights = [p.detach().half() for p in net.parameters()]
    net = net.half().float()
    x, zero = torch.randn(4, 2, 3).half(), torch.zeros(2, 2, 4).half()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x.float(), torch.tensor([4, 2]))
    with torch.no_grad():
        y, (hn, cn) = net(packed)
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
    sim.check("aclnnBidirectionLSTMV2", x, zero, zero, *weights, packed.batch_sizes.int(), 1, True,
              False, True, True, *(Out(t.half(), tolerance=4e-3) for t in (y, hn, cn)))  # fmt: skip


@inside
def test_images_are_laid_over_each_other(sim: Any) -> None:
    g = torch.Generator().manual_seed(0)
    a, b = torch.randint(0, 256, (2, 4, 5, 3), generator=g).unbind()
    alpha = torch.randint(0, 256, (4, 5, 1), generator=g)
    blended = (a * alpha + b * (255 - alpha)) // 255
    byte = torch.uint8
    sim.check("aclnnMrgbaCustom", a.to(byte), alpha.to(byte), Out((a * alpha // 255).to(byte)))
    sim.check(
        "aclnnBlendImagesCustom", a.to(byte), alpha.to(byte), b.to(byte), Out(blended.to(byte))
    )
    mask = (alpha > 100).half()
    replaced = torch.where(mask > 0, b, a).to(byte)
    sim.check("aclnnBackgroundReplace", a.to(byte), b.to(byte), mask, Out(replaced))


@inside
def test_overlapping_boxes_of_a_class_are_suppressed(sim: Any) -> None:
    boxes = torch.tensor([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, -0.1, 1.0, 0.9],
                           [0.0, 10.0, 1.0, 11.0], [0.0, 10.1, 1.0, 11.1],
                           [0.0, 100.0, 1.0, 101.0]]])  # fmt: skip
    scores = torch.tensor([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]])
    # The example of ONNX' NonMaxSuppression.
    chosen = torch.tensor([[0, 0, 3], [0, 0, 0], [0, 0, 5]], dtype=torch.int32)
    sim.check("aclnnNonMaxSuppression", boxes, scores, (3,), (0.5,), (0.0,), 0, Out(chosen))
