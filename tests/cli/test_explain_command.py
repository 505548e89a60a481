"""`explain` says what codes, messages and logs mean, without a device or an install."""

import io
import json

import pytest
from mindtorch_npu import exits, main

LOG = """\
Traceback (most recent call last):
  File "/srv/model.py", line 12, in forward
    return torch.mm(a, b)
RuntimeError: call aclnnMm failed, detail:EZ1001: [PID: 7] 2026-01-02-03:04:05.161.002 x
[ERROR] OP(7,python):2026-01-02-03:04:05.507.015 [aclnn_mm.cpp:1][NNOP] errno[161002] OpName:[a]
The k-axis of the two inputs are different. Shape [2, 3], [4, 5] DT_FLOAT16 Ascend910B3
        [FUNC:CheckShape][FILE:matmul_util.cpp][LINE:98]
"""


def leave(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main(list(words))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert leave("explain", "--json", *words) == exits.OK
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_a_log_gives_codes_calls_shapes_dtypes_chip_and_stack(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(LOG)
    reading = explained(capsys, str(file))["reading"]
    assert reading["codes"] == [[161002, "ACLNN_ERR_PARAM_INVALID"]]
    assert (reading["calls"], reading["ids"]) == (["aclnnMm"], ["EZ1001"])
    assert (reading["shapes"], reading["dtypes"]) == (["[2,3]", "[4,5]"], ["DT_FLOAT16"])
    assert reading["socs"] == ["Ascend910B3"]
    assert reading["frames"] == ["/srv/model.py:12 forward"]
    assert reading["sources"] == ["matmul_util.cpp:98 CheckShape"]


def test_canns_own_text_comes_before_the_codes_general_advice(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(LOG)
    first, *rest = explained(capsys, str(file))["findings"]
    assert "inner sizes" in first["cause"]
    assert first["run"] == "mindtorch-npu ops aclnnMm"
    assert any("ACLNN_ERR_PARAM_INVALID" in finding["evidence"] for finding in rest)


def test_a_folder_of_plog_files_is_read_as_one_log(tmp_path, capsys):
    (tmp_path / "plog").mkdir()
    (tmp_path / "plog/plog-1_2.log").write_text("rtSetDevice error code is 507033\n")
    (tmp_path / "plog/plog-3_4.log").write_text("EI0006: Getting socket times out.\n")
    reading = explained(capsys, str(tmp_path))["reading"]
    assert reading["codes"] == [[507033, "ACL_ERROR_RT_DEV_SETUP_ERROR"]]
    assert reading["ids"] == ["EI0006"]


def test_standard_input_is_a_log(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(LOG))
    assert explained(capsys, "-")["reading"]["calls"] == ["aclnnMm"]


def test_times_and_addresses_are_no_codes(capsys):
    text = "2026-01-02-03:04:05.161.002 pid 161002 result of 0x161002 at 161002.5"
    assert leave("explain", f"{text}\n{text}") == exits.NOTHING


def test_what_is_not_known_is_said_to_be_so(capsys):
    assert leave("explain", "banana") == exits.NOTHING
    assert "nothing here is" in capsys.readouterr().out


def test_words_are_one_text_and_a_names_remedy_is_shown(capsys):
    assert leave("explain", "aclnnForeachNorm", "161002") == exits.OK
    shown = capsys.readouterr().out
    assert "order other than 2" in shown
    assert "161002 ACLNN_ERR_PARAM_INVALID" in shown


def test_a_folder_without_logs_is_a_wrong_argument(tmp_path, capsys):
    assert leave("explain", str(tmp_path)) == exits.USAGE
    assert "no *.log" in capsys.readouterr().err


def test_markdown_is_written_on_request(capsys):
    assert leave("explain", "--md", "561103") == exits.OK
    assert "Likely causes" in capsys.readouterr().out


def test_an_installs_own_texts_are_used(tmp_path, capsys):
    row = {"ErrCode": "E77001", "suggestion": {"Possible Cause": "C.", "Solution": "S."}}
    (tmp_path / "conf/error_manager").mkdir(parents=True)
    file = tmp_path / "conf/error_manager/error_code.json"
    file.write_text(json.dumps({"error_info_list": [row]}))
    answer = explained(capsys, "--home", str(tmp_path), "E77001")
    assert "S." in [finding["fix"] for finding in answer["findings"]]


def test_a_home_without_texts_is_a_usage_error(tmp_path, capsys):
    assert leave("explain", "--home", str(tmp_path), "E10001") == exits.USAGE
    assert "error_code.json" in capsys.readouterr().err
