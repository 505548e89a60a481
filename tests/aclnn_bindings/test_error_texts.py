"""An install's own texts of message ids are read, and refused where they are no such list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aclnn_bindings.diagnose.explanation import explain
from aclnn_bindings.install import error_texts

ROW = {
    "errClass": "GE Errors", "errTitle": "Invalid_Argument", "ErrCode": "E77001",
    "ErrMessage": "Frobnication of [%s] ended after %s rounds without an answer.",
    "Arglist": "name,rounds",
    "suggestion": {"Possible Cause": "The rounds are too few.", "Solution": "Give more rounds."},
}  # fmt: skip


def written(home: Path, data: object, place: str = "conf") -> Path:
    file = home / place / "error_manager/error_code.json"
    file.parent.mkdir(parents=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return file


@pytest.mark.parametrize("place", ["conf", "runtime/conf", "compiler/conf", "x86_64-linux/conf"])
def test_an_install_explains_its_own_ids(tmp_path: Path, place: str) -> None:
    file = written(tmp_path, {"error_info_list": [ROW]}, place)
    first = explain("E77001: x", error_texts.read(tmp_path)).findings[0]
    assert (first.cause, first.fix) == ("The rounds are too few.", "Give more rounds.")
    assert first.source == str(file)


def test_a_message_is_known_without_its_id(tmp_path: Path) -> None:
    written(tmp_path, {"error_info_list": [ROW]})
    text = "Frobnication of [net] ended after 3 rounds without an answer."
    assert explain(text, error_texts.read(tmp_path)).findings[0].fix == "Give more rounds."
    assert explain("Frobnication of nothing", error_texts.read(tmp_path)).findings == ()


def test_what_says_nothing_is_left_out(tmp_path: Path) -> None:
    row = {**ROW, "suggestion": {"Possible Cause": "N/A", "Solution": "N/A"}}
    written(tmp_path, {"error_info_list": [row]})
    with_texts = explain("E77001", error_texts.read(tmp_path))
    assert with_texts == explain("E77001")


@pytest.mark.parametrize(
    "data", ["", "{", "[]", '{"error_info_list": 3}', '{"error_info_list": ["a", {"ErrCode": 1}]}',
             '{"error_info_list": [{"ErrCode": "E1", "suggestion": 5}]}', "[" * 9999],
)  # fmt: skip
def test_damaged_files_say_nothing(tmp_path: Path, data: str) -> None:
    written(tmp_path, data)
    assert all(not row.solution for row in error_texts.read(tmp_path).values())


def test_a_folder_without_the_file_has_no_texts(tmp_path: Path) -> None:
    assert error_texts.read(tmp_path) == {}
    assert error_texts.files(tmp_path / "absent") == []
