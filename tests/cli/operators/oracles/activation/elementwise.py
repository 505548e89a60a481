"""What torch gives for the rows of activation, elementwise."""

import torch
import torch.nn.functional as F

from .._arguments import t

ORACLES = {
    "aclnnSigmoidBackward": lambda a: torch.ops.aten.sigmoid_backward(
        t(a["gradOutput"]), t(a["output"])
    ),
    "aclnnTanhBackward": lambda a: torch.ops.aten.tanh_backward(t(a["gradOutput"]), t(a["output"])),
    "aclnnEluBackward": lambda a: torch.ops.aten.elu_backward(
        t(a["gradOutput"]),
        a["alpha"],
        a["scale"],
        a["inputScale"],
        a["isResult"],
        t(a["selfOrResult"]),
    ),
    "aclnnSeluBackward": lambda a: torch.ops.aten.elu_backward(
        t(a["gradOutput"]), 1.6732632423543772, 1.0507009873554805, 1.0, True, t(a["result"])
    ),
    "aclnnLeakyReluBackward": lambda a: torch.ops.aten.leaky_relu_backward(
        t(a["gradOutput"]), t(a["self"]), a["negativeSlope"], a["selfIsResult"]
    ),
    "aclnnThresholdBackward": lambda a: torch.ops.aten.threshold_backward(
        t(a["gradOutput"]), t(a["self"]), a["threshold"]
    ),
    "aclnnPrelu": lambda a: F.prelu(t(a["self"]), t(a["weight"]).reshape(-1)),
    "aclnnLogit": lambda a: torch.logit(t(a["input"]), a["eps"] if a["eps"] >= 0 else None),
    "aclnnLogitGrad": lambda a: torch.ops.aten.logit_backward(t(a["dy"]), t(a["x"]), a["eps"]),
    "aclnnSquaredRelu": lambda a: F.relu(t(a["input"])) ** 2,
    "aclnnShrink": lambda a: (
        (t(a["self"]) - a["bias"] * torch.sign(t(a["self"]))) * (t(a["self"]).abs() > a["lambd"])
    ),
    "aclnnRReluWithNoise": lambda a: F.rrelu(t(a["self"]), a["lower"], a["upper"], False),
}
