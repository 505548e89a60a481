"""What torch gives for the rows of foreach."""

import numpy as np
import torch

from ._arguments import t


def each(name):
    """A word of torch on every member."""
    return lambda a: [getattr(torch, name)(v) for v in t(a["x"])]


def number(value):
    return float(np.asarray(value).reshape(()))


def pairs(word):
    return lambda a: [word(p, q) for p, q in zip(t(a["x1"]), t(a["x2"]), strict=True)]


def scaled(word):
    return lambda a: [word(p, q, alpha=number(a["alpha"]))
                      for p, q in zip(t(a["x1"]), t(a["x2"]), strict=True)]  # fmt: skip


def by_scalar(word):
    return lambda a: [word(v, number(a["scalar"])) for v in t(a["x"])]


def by_scalars(word):
    return lambda a: [word(v, s) for v, s in zip(t(a["x"]), a["scalars"], strict=True)]


def least(v, s):
    return torch.minimum(v, torch.tensor(s, dtype=v.dtype))


def most(v, s):
    return torch.maximum(v, torch.tensor(s, dtype=v.dtype))


WORDS = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div,
         "Maximum": torch.maximum, "Minimum": torch.minimum, "Pow": torch.pow}  # fmt: skip
SCALARS = {**WORDS, "Maximum": most, "Minimum": least}

ORACLES = {
    f"aclnnForeach{n}": each(n.lower())
    for n in ("Acos", "Asin", "Atan", "Cos", "Cosh", "Exp", "Log", "Log10", "Log2", "Neg", "Sin",
              "Sqrt", "Tanh", "Abs", "Erf", "Log1p", "Reciprocal", "Sigmoid", "Sign", "Tan", "Erfc",
              "Expm1", "Sinh")
}  # fmt: skip
ORACLES |= {
    "aclnnForeachACosInplace": each("acos"),
    "aclnnForeachLogInplace": each("log"),
    "aclnnForeachCopy": each("clone"),
    "aclnnForeachZeroInplace": each("zeros_like"),
}
for _name, _word in WORDS.items():
    ORACLES[f"aclnnForeach{_name}List"] = (
        scaled(_word) if _name in ("Add", "Sub") else pairs(_word))  # fmt: skip
    ORACLES[f"aclnnForeach{_name}Scalar"] = by_scalar(SCALARS[_name])
    ORACLES[f"aclnnForeach{_name}ScalarList"] = by_scalars(SCALARS[_name])
for _name, _word in (("cmul", torch.addcmul), ("cdiv", torch.addcdiv)):
    ORACLES[f"aclnnForeachAdd{_name}Scalar"] = lambda a, w=_word: [
        w(*v, value=number(a["scalar"])) for v in zip(*(t(a[k]) for k in ("x1", "x2", "x3")),
                                                      strict=True)]  # fmt: skip
    ORACLES[f"aclnnForeachAdd{_name}ScalarList"] = lambda a, w=_word: [
        w(*v, value=float(s)) for *v, s in zip(*(t(a[k]) for k in ("x1", "x2", "x3")),
                                               a["scalars"], strict=True)]  # fmt: skip
ORACLES |= {
    "aclnnForeachLerpList": lambda a: [
        torch.lerp(*v) for v in zip(t(a["x1"]), t(a["x2"]), t(a["weight"]), strict=True)
    ],
    "aclnnForeachLerpScalar": lambda a: [
        torch.lerp(p, q, a["weight"]) for p, q in zip(t(a["x1"]), t(a["x2"]), strict=True)
    ],
}
