"""Draws of generators, and dropout."""

from __future__ import annotations

from ....judge.precision import numpy_dtype
from ....spec import *
from .. import draws
from ..row import unspecified
from ._defaults import HEADER_ONLY
from ._words import *

_SOURCE: Final = "Knuth: The Art of Computer Programming 3.3 and 3.4; torch's documents"
_MANY: Final = sizes({"*S": leading("33x65", 5001)})
_SIGNED: Final = "f32 f16 bf16 i32"
_FRACTIONS: Final = "f32 f16 bf16"
_OTHERS: Final = "each case draws with other ones, too"
_SEED: Final[dict[str, Domain]] = {"seed": only(7, _OTHERS), "offset": only(0, _OTHERS)}


def _in_tensors(dtype: str = "i64") -> dict[str, Domain]:
    return {"seedTensor": scalar_tensor(dtype, 7), "offsetTensor": scalar_tensor(dtype, 0),
            "offset": only(0, _OTHERS)}  # fmt: skip


def _by_draws(how: Any) -> Rule:
    return Rule("random", _SOURCE, draws=how)


def _blank(selfRef: Array) -> Array:
    return np.zeros_like(selfRef)


_NORMAL: Final[dict[str, Domain]] = {"mean": number(1.0, -3.0, 0.0), "std": number(2.0, 5.0)}
_UNIFORM: Final[dict[str, Domain]] = {"from": number(-1.0, 0.0), "to": number(5.0, 4.5)}
_RANGE: Final[dict[str, Domain]] = {"from": number(0, -5, 3), "to": number(9, 101)}
# Names, distribution, dtypes, what it takes.
for _names, _how, _dtypes, _params in (
    ("InplaceNormal", draws.normal, _FRACTIONS, _NORMAL | _SEED),
    ("InplaceNormalTensor", draws.normal, _SIGNED, _NORMAL | _in_tensors()),
    ("InplaceUniform", draws.uniform, _SIGNED, _UNIFORM | _SEED),
    ("InplaceUniformTensor", draws.uniform, _SIGNED, _UNIFORM | _in_tensors("u64")),
    ("InplaceRandom", draws.integers, _SIGNED, _RANGE | _SEED),
    ("InplaceRandomTensor", draws.integers, _SIGNED, _RANGE | _in_tensors()),
    ("InplaceRandomWithoutFromTo", draws.integers, f"{_SIGNED} u8 bool", _SEED),
    ("InplaceRandomWithoutFromToTensor", draws.integers, f"{_SIGNED} u8 bool", _in_tensors()),
):  # fmt: skip
    spec(
        f"aclnn{_names}",
        _by_draws(_how),
        _MANY,
        selfRef=inout(tensor("*S", _dtypes, strided=False)),
        **_params,
    )(_blank)

_WEIGHTS: Final[dict[str, Domain]] = {
    "self": tensor("M N", "f32 f16 bf16 f64", 0.1, 1, strided=False),
    "numsamples": number(4, 1, "N"), "replacement": flag(),
}  # fmt: skip
_LOTS: Final = sizes(M=batch(331), N=row(9, 4, 17))
for _names, _params in (("Multinomial", _SEED), ("MultinomialTensor", _in_tensors())):
    spec(f"aclnn{_names}", _by_draws(draws.categories), _LOTS, **_WEIGHTS, **_params,
         out=out("i64"))(
        lambda self, numsamples: np.zeros((len(self), numsamples)))  # fmt: skip


def _rows_of_128(shape: tuple[int, ...]) -> Array:
    """A bit an element, up to a whole number of 128."""
    return np.zeros(-(-int(np.prod(shape)) // 128) * 16)


_SHAPES: Final = array((65, 128), (33, 65), (5003,))
_TYPE: Final = ignored("the type of a probability that is a double already", choice(0, 1, 27))
for _names, _params in (
    ("DropoutGenMask", _SEED), ("DropoutGenMaskV2", _SEED | {"probDataType": _TYPE}),
    ("DropoutGenMaskV2Tensor", _in_tensors() | {"probDataType": _TYPE}),
):  # fmt: skip
    spec(f"aclnn{_names}", _by_draws(draws.keep_bits), shape=_SHAPES, prob=number(0.5, 0.1, 0.9),
         **_params, out=out("u8"))(_rows_of_128)  # fmt: skip


@spec("aclnnNormalFloatFloat", _by_draws(draws.normal), **_NORMAL, **_SEED, out=out("f32"))
def normal(mean: float, std: float) -> Array:
    return np.zeros((33, 65))


_STDS: Final = tensor("*S", _FRACTIONS, 0.5, 2)
_MEANS: Final = tensor("*S", _FRACTIONS)
for _names, _first, _second, _of in (
    ("NormalFloatTensor", _NORMAL["mean"], _STDS, "std"),
    ("NormalTensorFloat", _MEANS, _NORMAL["std"], "mean"),
    ("NormalTensorTensor", _MEANS, tensor("*S", "mean", 0.5, 2), "mean"),
):  # fmt: skip
    spec(f"aclnn{_names}", _by_draws(draws.normal), _MANY, mean=_first, std=_second, **_SEED,
         out=out(_of))(
        lambda mean, std: np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(std))))  # fmt: skip

for _names, _chance in (("Bernoulli", number(0.3, 0.5, 0.95)),
                        ("BernoulliTensor", tensor("*S", "f32", 0, 1))):  # fmt: skip
    spec(f"aclnn{_names}", _by_draws(draws.bernoulli), _MANY,
         self=tensor("*S", _FRACTIONS, strided=False), prob=_chance, **_SEED, out=out("self"))(
        lambda self: np.zeros_like(self))  # fmt: skip
spec("aclnnRandperm", _by_draws(draws.permutation), n=number(33, 129, 2049), **_SEED,
     out=out("i64"))(lambda n: np.arange(n))  # fmt: skip


def dropped(result: Array, arguments: Any) -> tuple[str, Any, Any]:
    """1 where an element stayed and was scaled by 1 / (1 - p), 0 where it fell out; without
    training all stay as they are."""
    kind = numpy_dtype(result.dtype.name)
    keep = 1 - arguments["p"] if arguments.get("train", True) else 1.0
    stayed = (arguments["input"].astype(np.float64) / keep).astype(kind)
    near = np.isclose(result.astype(np.float64), stayed.astype(np.float64), 1e-2)
    return "bernoulli", np.asarray(keep), np.where(near, 1.0, result.astype(np.float64))


_DROPOUT: Final = Rule("random", "torch 2.13, document of F.dropout", draws=dropped)
_INPUT: Final = tensor("*S", "f32 f16 bf16", 0.5, 2)


def _undecided(input: Array) -> tuple[Array, Array]:
    return np.zeros_like(input), _rows_of_128(input.shape)


spec("aclnnDropout", _DROPOUT, _MANY, input=_INPUT, p=number(0.5, 0.1, 0.9), train=flag(True),
     **_SEED, out=out("input"), maskOut=out("u8"))(_undecided)  # fmt: skip
spec("aclnnDropoutV3", _DROPOUT, _MANY, input=_INPUT,
     optionalNoiseShape=null("documents allow null alone"), p=number(0.5, 0.1, 0.9), **_SEED,
     out=out("input"), maskOut=out("u8"))(_undecided)  # fmt: skip

_MASKED: Final = Rule("composite", "Srivastava et al.: Dropout, 2014; a bit an element",
                      sparse=True, values="normal integer wide opposed")  # fmt: skip
_FEW: Final = sizes({"*S": leading("4x64", 1, "3x43", 129, "2x3x5", 1030)})
_GRAD: Final = tensor("*S", "f32 f16 bf16")


def _bits(of: str) -> Domain:
    return tensor(f"16*ceil(size({of}),128)", "u8", 0, 255)


@spec("aclnnDropoutBackward", _MASKED, _FEW,
      also("aclnnDropoutV3Grad", gradOutput="gradY", out="gradX"), gradOutput=_GRAD,
      mask=_bits("gradOutput"), scale=number(2.0, 1.25, 0.0), out=out("gradOutput"))  # fmt: skip
def masked(gradOutput: Array, mask: Array, scale: float) -> Array:
    """Bits past the last element mean nothing."""
    bits = np.unpackbits(mask.astype(np.uint8), bitorder="little")[: gradOutput.size]
    return np.where(bits.reshape(gradOutput.shape), gradOutput * scale, 0)


@spec("aclnnDropoutDoMask", _MASKED, _FEW, self=_GRAD, mask=_bits("self"),
      prob=number(0.5, 0.2, 0.0), out=out("self"))  # fmt: skip
def do_mask(self: Array, mask: Array, prob: float) -> Array:
    return masked(self, mask, 1 / (1 - prob))


unspecified("aclnnSimThreadExponential",
            "fills with exponential draws of a generator whose state per thread is not published",
            HEADER_ONLY)  # fmt: skip
