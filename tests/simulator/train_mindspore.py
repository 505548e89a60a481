"""MindSpore on `sys.argv[1]` (Ascend or CPU): losses of a convolutional net and a small attention
block, as words on one line; with `graph` behind it, as graphs of kernels."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops

TARGET = sys.argv[1]
ms.set_device(*(["CPU"] if TARGET == "CPU" else [TARGET, 0]))
if sys.argv[2:] == ["graph"]:
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})
else:
    ms.set_context(mode=ms.PYNATIVE_MODE)
RNG = np.random.RandomState(0)


class Image(nn.Cell):
    """Layers that Ascend runs by their type names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, has_bias=True)
        self.norm, self.pool = nn.BatchNorm2d(8), nn.MaxPool2d(2, 2)
        self.dense, self.last = nn.Dense(8 * 4 * 4, 10), nn.LayerNorm((10,))

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.last(self.dense(x.reshape(x.shape[0], -1)))


class Text(nn.Cell):
    """Operators that Ascend runs through ACLNN."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = mint.nn.Linear(8, 24), mint.nn.Linear(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        q, k, v = mint.split(self.mix(x), 8, -1)
        weights = mint.softmax(mint.matmul(q, k.swapaxes(-1, -2)) / 3.0, -1)
        return self.out(mint.nn.functional.relu(mint.matmul(weights, v))).mean(1)


def train(net: nn.Cell, x: Tensor, labels: Tensor) -> None:
    for parameter in net.get_parameters():
        values = RNG.rand(*parameter.shape) * 0.4 + (0.5 if "moving" in parameter.name else -0.1)
        parameter.set_data(Tensor(values.astype(np.float32)))
    net.set_train(True)
    criterion, adam = nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-2)

    def cost(a: Tensor, b: Tensor) -> Tensor:
        return criterion(net(a), b)

    step = ms.value_and_grad(cost, None, adam.parameters)
    for _ in range(4):
        loss, gradients = step(x, labels)
        adam(gradients)
        print(float(loss.asnumpy()), end=" ")


LABELS = Tensor(np.array([1, 2, 3, 4], np.int32))
train(Image(), Tensor(RNG.randn(4, 3, 8, 8).astype(np.float32)), LABELS)
train(Text(), Tensor(RNG.randn(4, 6, 8).astype(np.float32)), LABELS)
