"""What an install's platform files state about a product's matrix units."""

import pytest

from aclnn_bindings.install.platform_config import product_rate

STATED = """\
[SoCInfo]
ai_core_cnt=24
[AICoreSpec]
cube_freq=1800
cube_m_size=16
cube_n_size=16
cube_k_size=16
"""


def written(home, text, place="arm64-linux/data"):
    folder = home / place / "platform_config"
    folder.mkdir(parents=True)
    (folder / "Ascend910B2.ini").write_text(text)


@pytest.mark.parametrize("place", ["data", "arm64-linux/data", "compiler/x/data"])
def test_the_rate_is_cores_times_products_times_clock(tmp_path, place):
    written(tmp_path, STATED, place)
    assert product_rate(tmp_path, "Ascend910B2") == 2 * 24 * 16**3 * 1800e6


def test_matrix_cores_count_where_vector_cores_are_apart(tmp_path):
    written(tmp_path, STATED.replace("ai_core_cnt=24", "ai_core_cnt=24\ncube_core_cnt=20"))
    assert product_rate(tmp_path, "Ascend910B2") == 2 * 20 * 16**3 * 1800e6


@pytest.mark.parametrize(
    "text",
    ["", "no section", STATED.replace("1800", "fast"), "[SoCInfo]\n", STATED.replace("=24", "=0")],
)
def test_a_file_that_states_nothing_gives_no_rate(tmp_path, text):
    written(tmp_path, text)
    assert product_rate(tmp_path, "Ascend910B2") is None


def test_another_product_has_none(tmp_path):
    written(tmp_path, STATED)
    assert product_rate(tmp_path, "Ascend910B3") is None
