"""FileCheck finds, misses and says so as torch's does."""

import pytest

import mindtorch.testing

torch = pytest.importorskip("torch")

TEXT = """def f(x):
    a = x + 1
    b = a * 2
    c = a * 3
    return b, c
"""
CHAINS = (
    lambda f: f,
    lambda f: f.check("x + 1").check("a * 2"),
    lambda f: f.check("a * 2").check("x + 1"),
    lambda f: f.check(""),
    lambda f: f.check_not("zzz"),
    lambda f: f.check_not("a * 2"),
    lambda f: f.check("x + 1").check_not("a * 2").check("return"),
    lambda f: f.check("x + 1").check_next("b = a"),
    lambda f: f.check("x + 1").check_next("c = a"),
    lambda f: f.check("x + 1").check_next("zzz"),
    lambda f: f.check_next("a"),
    lambda f: f.check("def f").check_same("(x)"),
    lambda f: f.check("def f").check_same("a = x"),
    lambda f: f.check("x + 1").check_same("zzz"),
    lambda f: f.check_count("a * ", 2),
    lambda f: f.check_count("a * ", 2, exactly=True),
    lambda f: f.check_count("a * ", 1, exactly=True),
    lambda f: f.check_count("a * ", 3),
    lambda f: f.check_count("zz", 0, exactly=True),
    lambda f: f.check_count("a", 2).check("b = "),
    lambda f: f.check_dag("a * 3").check_dag("a * 2").check("return"),
    lambda f: f.check_dag("a * 3").check_dag("a * 4"),
    lambda f: f.check_dag("a * 3").check_not("q").check_dag("a * 2"),
    lambda f: f.check_not("b = ").check_dag("c =").check_dag("return"),
    lambda f: f.check_regex(r"a \* \d").check_regex(r"b, \w").check_not("zz"),
    lambda f: f.check_regex(r"q \* \d"),
    lambda f: f.check_source_highlighted("a"),
    lambda f: f.check("def").check_not("return").check_not("zz"),
)
LINES = (
    "# CHECK: x + 1\n# CHECK-NEXT: b = \n# CHECK-NOT: zz\n# CHECK-COUNT-1: c =\n# CHECK-DAG: return",
    "# CHECK: x + 2\n",
    "# nothing",
    "#   CHECK-COUNT-EXACTLY-2: a *",
    "# CHECK-COUNT-EXACTLY-1: a *",
    "# CHECK-FOO: a *",
    "# CHECK: a *\n#CHECK-REGEX: b, \\w",
)
UNDERLINED = ("a = x + 1\n    ~~~~~ <--- HERE\n", "a = x + 1\n    ~~~ <--- HERE\n", "")


def _outcome(package, chain, *texts):
    check = chain(package.testing.FileCheck())
    try:
        return check.run(*texts)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("number", range(len(CHAINS)))
def test_chains_of_checks(number):
    chain = CHAINS[number]
    assert _outcome(mindtorch, chain, TEXT) == _outcome(torch, chain, TEXT)


@pytest.mark.parametrize("lines", LINES)
def test_lines_of_checks(lines):
    plain = CHAINS[0]
    assert _outcome(mindtorch, plain, lines, TEXT) == _outcome(torch, plain, lines, TEXT)


@pytest.mark.parametrize("text", UNDERLINED)
def test_underlined_text(text):
    def underlined(check):
        return check.check_source_highlighted("x + 1")

    assert _outcome(mindtorch, underlined, text) == _outcome(torch, underlined, text)


def test_checks_that_never_ran_say_so(capfd):
    printed = []
    for package in (torch, mindtorch):
        check = package.testing.FileCheck().check("a").check_count("b", 2)
        del check
        printed.append(capfd.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_what_is_no_text_is_refused():
    for call in (lambda f: f.check(3), lambda f: f.run(3), lambda f: f.check_count("a", "b")):
        messages = []
        for package in (torch, mindtorch):
            with pytest.raises(TypeError) as error:
                call(package.testing.FileCheck())
            messages.append(str(error.value).split("\n\nInvoked with")[0])
        assert messages[0] == messages[1]
