"""`new` writes a reference and a pytest file that run as they are."""

from click.testing import CliRunner
from mindtorch_npu import check, exits
from mindtorch_npu.commands.new import text
from mindtorch_npu.commands.new.command import new
from mindtorch_npu.spec import ROWS

from aclnn_bindings.interface import catalog


def create_files(tmp_path, operator="aclnnSub"):
    outcome = CliRunner().invoke(
        new, [operator, "--simulator", "--out", str(tmp_path)], standalone_mode=False
    )
    assert (outcome.exception, outcome.return_value) == (None, exits.OK)
    return tmp_path / "my_ops.py", tmp_path / "test_my_ops.py"


def test_every_operator_of_the_catalog_gets_a_declaration_that_fits_its_header():
    before = dict(ROWS)
    try:
        for name, op in catalog.load(catalog.versions()[-1]).ops.items():
            ROWS.clear()
            exec(compile(text.reference(op), name, "exec"), {"__name__": "my_ops"})
            ROWS[name].declaration.bind([p.name for p in op.params])
            compile(text.tests(op, "my_ops.py"), name, "exec")
    finally:
        ROWS.clear()
        ROWS.update(before)


def test_the_file_runs_as_it_stands_and_judges_once_the_formula_is_filled_in(tmp_path):
    file, _ = create_files(tmp_path)
    options = {"simulator": True, "dtypes": ("float32",)}
    report = check("aclnnSub", golden=file, **options)
    assert report.failures
    assert report.failures[0].verdict == "FAIL"
    right = file.read_text().replace("return self\n", "return self - alpha * other\n")
    file.write_text(right)
    (tmp_path / "filled.py").write_text(right)
    assert check("aclnnSub", golden=tmp_path / "filled.py", **options).passed


def test_a_file_that_exists_is_not_replaced(tmp_path):
    file, _ = create_files(tmp_path)
    file.write_text("mine")
    outcome = CliRunner().invoke(new, ["aclnnSub", "--simulator", "--out", str(tmp_path)])
    assert outcome.exit_code == exits.USAGE
    assert "exists: name another with --name" in outcome.output
    assert file.read_text() == "mine"


def test_an_operator_that_no_header_declares_is_refused_with_a_near_name(tmp_path):
    outcome = CliRunner().invoke(new, ["aclnnSubb", "--simulator", "--out", str(tmp_path)])
    assert outcome.exit_code == exits.USAGE
    assert "did you mean aclnnSub" in outcome.output


def test_what_no_header_marks_as_a_result_goes_by_name_or_place():
    op = catalog.load(catalog.versions()[-1]).ops["aclnnRmsNorm"]
    assert [p.name for p in text.results(op)] == ["yOut", "rstdOut"]
