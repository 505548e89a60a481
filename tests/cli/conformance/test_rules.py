"""What published rules let through, computed anew: why no verdict rests on them alone."""

import numpy as np
import pytest
from mindtorch_npu.judge import rules
from mindtorch_npu.judge.classes import requirement
from mindtorch_npu.judge.metrics import errors, measure
from mindtorch_npu.judge.precision import rounded
from mindtorch_npu.judge.tiers import judge

SIZE = 8192


def softmax(columns):
    x = np.random.default_rng(0).standard_normal((8, columns))
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def passes(rule, got, golden, dtype):
    return rule(errors(got, golden, dtype)).passed


@pytest.mark.parametrize(("dtype", "columns"), [("bfloat16", 1024), ("float16", 4096)])
def test_mixed_rule_passes_an_all_zero_softmax_and_the_others_do_not(dtype, columns):
    golden = softmax(columns)
    zeros = rounded(np.zeros_like(golden), dtype)
    assert passes(rules.MIXED_RULE, zeros, golden, dtype)
    for rule in (rules.MEANS, rules.SHARE_RULE, rules.COSINE, rules.ASSERT_CLOSE):
        assert not passes(rule, zeros, golden, dtype)


def test_all_zero_bfloat16_softmax_fails_its_class():
    golden = softmax(1024)
    zeros = rounded(np.zeros_like(golden), "bfloat16")
    need = requirement("composite", "softmax")
    found = judge(need, "bfloat16", measure(zeros, golden, "bfloat16"),
                  errors(zeros, golden, "bfloat16"))  # fmt: skip
    assert not found.passed
    assert found.headline not in ("T0", "T1", "T2")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_eight_unwritten_elements_pass_share_and_cosine_and_fail_torch(dtype):
    golden = 1 / (1 + np.exp(-np.random.default_rng(0).uniform(-5, 5, SIZE)))
    got = rounded(golden, dtype)
    got[-8:] = 0
    assert passes(rules.SHARE_RULE, got, golden, dtype)
    assert passes(rules.COSINE, got, golden, dtype)
    assert passes(rules.MIXED_RULE, got, golden, dtype) is (dtype == "bfloat16")
    assert not passes(rules.MEANS, got, golden, dtype)
    assert not passes(rules.ASSERT_CLOSE, got, golden, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_rule_passes_64_unwritten_elements_of_a_small_tanh(dtype):
    golden = np.tanh(np.random.default_rng(0).uniform(-0.04, 0.04, SIZE))
    got = rounded(golden, dtype)
    got[-64:] = 0
    assert passes(rules.MIXED_RULE, got, golden, dtype)
    assert passes(rules.COSINE, got, golden, dtype)
    assert not passes(rules.MEANS, got, golden, dtype)
    assert not passes(rules.ASSERT_CLOSE, got, golden, dtype)


def test_mixed_rule_passes_float32_tanh_in_half_precision():
    x = np.random.default_rng(0).uniform(-5, 5, SIZE)
    golden = np.tanh(x)
    got = rounded(rounded(golden, "float16").astype(np.float64), "float32")
    assert passes(rules.MIXED_RULE, got, golden, "float32")
    assert not passes(rules.MEANS, got, golden, "float32")
    assert not passes(rules.SHARE_RULE, got, golden, "float32")
    assert not passes(rules.ASSERT_CLOSE, got, golden, "float32")
    assert measure(got, golden, "float32").max_ulp > 1000


def product(k, rows=64, drop=0, low=False):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((rows, k)).astype(np.float16)
    b = rng.standard_normal((k, rows)).astype(np.float16)
    golden = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    if low:
        got = np.zeros_like(golden, dtype=np.float16)
        for i in range(k):
            got += a[:, i : i + 1] * b[i : i + 1]
    else:
        last = k - drop
        got = (a[:, :last].astype(np.float32) @ b[:last].astype(np.float32)).astype(np.float16)
    return got, golden, scale


@pytest.mark.parametrize("k", [64, 1024, 8192])
def test_componentwise_ratio_of_float32_accumulation_stays_below_one(k):
    got, golden, scale = product(k, 32)
    assert measure(got, golden, "float16", scale).ratio <= 1.0


@pytest.mark.parametrize("k", [64, 1024, 8192])
def test_componentwise_ratio_sees_a_dropped_last_k(k):
    got, golden, scale = product(k, 64, drop=1)
    assert measure(got, golden, "float16", scale).ratio > 4.0


@pytest.mark.parametrize("k", [64, 1024])
def test_componentwise_ratio_sees_accumulation_in_half_precision(k):
    got, golden, scale = product(k, 32, low=True)
    assert measure(got, golden, "float16", scale).ratio > 4.0


def test_positive_operands_hide_a_dropped_last_k_from_the_ecosystem_rules():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1, (32, 8192)), rng.uniform(0, 1, (8192, 32))
    golden, got = a @ b, rounded(a[:, :-1] @ b[:-1], "float16")
    for rule in (rules.MEANS, rules.MIXED_RULE, rules.SHARE_RULE, rules.COSINE):
        assert passes(rule, got, golden, "float16"), rule.name


def test_small_integers_show_a_dropped_last_k_bit_for_bit():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-2, 3, (32, 65)), rng.integers(-2, 3, (65, 32))
    golden = (a @ b).astype(np.float64)
    assert measure(golden.astype(np.float16), golden, "float16").exact
    assert not measure((a[:, :-1] @ b[:-1]).astype(np.float16), golden, "float16").exact


def test_correctly_rounded_results_pass_every_rule():
    golden = np.random.default_rng(0).standard_normal(SIZE)
    for dtype in ("float16", "bfloat16", "float32"):
        got = rounded(golden, dtype)
        for rule in (rules.MEANS, rules.MIXED_RULE, rules.ASSERT_CLOSE, rules.COSINE):
            assert passes(rule, got, golden, dtype), (rule.name, dtype)


def test_lost_nan_fails_every_rule():
    golden = np.array([1.0, np.nan, 2.0])
    got = np.array([1.0, 0.0, 2.0], np.float32)
    for rule in (rules.MEANS, rules.MIXED_RULE, rules.ASSERT_CLOSE):
        assert not passes(rule, got, golden, "float32")


def test_rules_show_their_version_and_numbers():
    golden = np.ones(4)
    shown = rules.MIXED_RULE(errors(rounded(golden, "float16"), golden, "float16"))
    assert "2026-07-22" in shown.rule
    assert "at least 99%" in shown.numbers
