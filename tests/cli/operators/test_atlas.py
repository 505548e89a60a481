"""The atlas: one page for every operator of every catalog, and a search that answers questions."""

import json
import re
import sys
from pathlib import Path

import pytest
from mindtorch_npu import exits, main
from mindtorch_npu.commands.ops.atlas import entry, site

from aclnn_bindings.interface import catalog

sys.path.insert(0, str(Path(__file__).parents[1]))
from browser import browser, missing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("atlas")
    site.write(made)
    return made


def test_every_operator_of_every_catalog_has_a_page(folder):
    names = {n for v in catalog.versions() for n in catalog.load(v).ops}
    assert {p.stem for p in (folder / "op").iterdir()} == names


def test_a_page_tells_signature_products_formula_and_clients(folder):
    text = (folder / "op" / "aclnnRmsNorm.html").read_text("utf-8")
    for told in ("since 8.1.RC1", "const aclTensor *gamma", "310P", "Zhang, Sennrich", "ggml",
                 "1 / np.sqrt"):  # fmt: skip
        assert told in text, told


def test_a_page_tells_how_many_mutants_the_cases_kill(folder):
    told = (folder / "op" / "aclnnAddmm.html").read_text("utf-8")
    assert re.search(r"\d+ of \d+ mutants killed", told)
    assert "not mutation-tested" in (folder / "op" / "aclnnRmsNorm.html").read_text("utf-8")


def test_a_changed_signature_shows_both(folder):
    changed = [e for e in entry.entries() if len(e.signatures) > 1]
    assert changed
    text = (folder / "op" / f"{changed[0].name}.html").read_text("utf-8")
    assert "changed in" in text


def test_the_search_data_is_json_that_no_parser_takes_for_markup(folder):
    text = (folder / "data.js").read_text("utf-8")
    found = json.loads(re.fullmatch(r"const ATLAS = (.*);\n", text).group(1))
    assert "<" not in text
    assert len(found["ops"]) == len(list((folder / "op").iterdir()))


def test_what_an_operator_is_asked_by_name_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["ops", "aclnnFlashAttentionScore"])
    assert ended.value.code == exits.OK
    shown = capsys.readouterr().out
    for told in ("attention", "FlashAttention", "scaleValue", "8.1.RC1"):
        assert told in shown


def test_an_operator_that_no_version_declares_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["ops", "aclnnRmsNom"])
    assert ended.value.code == exits.USAGE
    assert "near: aclnnRmsNorm" in capsys.readouterr().err


@pytest.mark.skipif(bool(missing()), reason=missing() or "there")
def test_can_i_use_it_there_is_one_search(folder, tmp_path):
    with browser(tmp_path) as page:
        page.open((folder / "index.html").as_uri() + "#Can I use RmsNorm on 310P with 8.1?")
        first = page.script("return document.querySelector('#found tbody tr').innerText")
        assert first.startswith("aclnnRmsNorm yes")
        answer = page.script("return document.querySelector('#answer').innerText")
        assert "on 310P with 8.1.RC1" in answer
        for query, name in (("rms_norm 910B bfloat16", "aclnnRmsNorm yes"),
                            ("native_layer_norm", "aclnnLayerNorm"),
                            ("rms_norm 310P bf16", "aclnnRmsNorm not BFLOAT16")):  # fmt: skip
            page.open((folder / "index.html").as_uri() + "#" + query)
            page.script("location.reload()")
            rows = "return [...document.querySelectorAll('#found tbody tr')].map(r => r.innerText)"
            assert any(row.startswith(name) for row in page.script(rows)[:3]), query
