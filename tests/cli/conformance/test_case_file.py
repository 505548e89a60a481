"""Case files of the vendor's kit: cells are data, invalid ones are named."""

import pytest
from mindtorch_npu.conformance.cases.case_file import CaseFileError, read

HEAD = "testcase_name,api_name,tensor_view_shapes,tensor_dtypes,attributes,input_data_ranges"
GOOD = "small,aclnnAdd,\"((2,3),(2,3),(2,3))\",\"('fp16','fp16','fp16')\",{'alpha': 2.0},"


def write_cases(tmp_path, *lines, head=HEAD):
    path = tmp_path / "cases.csv"
    path.write_text("\n".join((head, *lines)) + "\n")
    return path


def test_a_row_is_read_as_literals_with_full_dtype_names(tmp_path):
    file = read(write_cases(tmp_path, GOOD))
    cells = file.rows[0].cells
    assert cells["tensor_dtypes"] == ("float16",) * 3
    assert cells["attributes"] == {"alpha": 2.0}
    assert cells["tensor_view_shapes"] == ((2, 3),) * 3


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("tensor_dtypes", "\"('fp17',)\"", "'fp17': expected one of"),
        ("tensor_view_shapes", '"((2,-3),)"', "a tuple of shapes"),
        ("tensor_view_shapes", "", "a tuple of shapes"),
        ("attributes", "__import__('os').system('true')", "a dict of parameters"),
        ("api_name", "torch.add", "an ACLNN operator"),
        ("input_data_ranges", "\"(('a', 1),)\"", "a tuple of pairs"),
    ],
)
def test_an_invalid_cell_names_row_column_value_and_what_is_expected(tmp_path, column, cell, words):
    names = HEAD.split(",")
    good = ["small", "aclnnAdd", '"((2,3),)"', "", "", ""]
    good[names.index(column)] = cell
    with pytest.raises(CaseFileError, match=f"row 2, column {column}:") as caught:
        read(write_cases(tmp_path, ",".join(good)))
    assert words in str(caught.value)


def test_a_name_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(CaseFileError, match="row 3, column testcase_name: 'small'"):
        read(write_cases(tmp_path, GOOD, GOOD))


def test_a_column_that_is_not_known_is_named(tmp_path):
    file = read(write_cases(tmp_path, GOOD + ",red", head=HEAD + ",colour"))
    assert file.ignored == ("colour",)


def test_a_row_that_is_not_enabled_is_counted(tmp_path):
    file = read(write_cases(tmp_path, GOOD + ",False", head=HEAD + ",is_enabled"))
    assert (file.rows, file.disabled) == ((), 1)


def test_rerun_takes_what_did_not_pass(tmp_path):
    lines = (GOOD + ",PASS", GOOD.replace("small", "large") + ",FAIL")
    file = read(write_cases(tmp_path, *lines, head=HEAD + ",precision_status"), rerun=True)
    assert [row.name for row in file.rows] == ["large"]


def test_a_workbook_is_read_as_its_csv_would_be(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["api_name", "tensor_view_shapes"])
    book.active.append(["aclnnAdd", "((2,),(2,),(2,))"])
    book.save(tmp_path / "cases.xlsx")
    assert read(tmp_path / "cases.xlsx").rows[0].cells["tensor_view_shapes"] == ((2,),) * 3
    with pytest.raises(CaseFileError, match="no sheet 'other'"):
        read(tmp_path / "cases.xlsx", "other")
