"""Variables that concern CANN are shown, and no secret with them."""

import re
from pathlib import Path

import pytest

from aclnn_bindings import Cause
from aclnn_bindings.install.environment import (
    FAULTS,
    MASK,
    concealed,
    masked,
    masked_variables,
    visible_command,
    visible_value,
)

SECRET = "hunter2"


@pytest.mark.parametrize(
    "name",
    ["ASCEND_API_TOKEN", "NPU_SSHKEY", "ASCEND_LOGIN", "HCCL_AUTH_HEADER", "NPU_DSN",
     "ACL_KENNWORT", "MINDTORCH_RUN_TOKEN", "ASCEND_MIMA", "HCCL_SALT", "NPU_OTP",
     "TASK_QUEUE_URL", "ASCEND_CONNECTION", "DRIVER_LICENSE", "TBE_CERT", "ACLSIM_FAULT"],
)  # fmt: skip
def test_the_value_of_an_unknown_variable_is_not_shown(name: str) -> None:
    for value in (SECRET, "1", "/x"):
        assert visible_value(name, value) == MASK
        assert masked_variables({name: value}) == {name: MASK}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASCEND_HOME_PATH", f"https://host/x#{SECRET}"),
        ("ASCEND_HOME_PATH", f"/x?sig={SECRET}"),
        ("ASCEND_CUSTOM_OPP_PATH", f"s3://bucket/{SECRET}"),
        ("LD_LIBRARY_PATH", f"/lib;A={SECRET}"),
        ("LD_PRELOAD", f"//host/share%20{SECRET}"),
        ("ASCEND_CACHE_PATH", f"me:{SECRET}@host:/cache"),
        ("ASCEND_WORK_PATH", f"/x|curl -d {SECRET}"),
        ("ASCEND_RT_VISIBLE_DEVICES", SECRET),
        ("HCCL_CONNECT_TIMEOUT", f"120 {SECRET}"),
        ("ASCEND_GLOBAL_LOG_LEVEL", f"3;{SECRET}"),
        ("PYTORCH_NPU_ALLOC_CONF", f"expandable_segments:True,{SECRET}zZ9xQ8"),
        ("HCCL_ALGO", f"level0:{SECRET}+/=="),
        ("HCCL_SOCKET_IFNAME", f"eth0 {SECRET}"),
        ("ACLSIM_FAULTS", f"add:zeros #{SECRET}"),
        ("ACLSIM_FAULTS", f"me:{SECRET}@1"),
        ("ACLSIM_SOC", "sk-hunter2hunter2hunter2"),
    ],
)
def test_the_value_of_a_known_variable_is_shown_in_its_form_alone(name: str, value: str) -> None:
    assert SECRET not in visible_value(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_LIBRARY_PATH", "/usr/local/Ascend/lib64:relative/lib:~/lib::/a b"),
        ("ASCEND_HOME_PATH", '"/usr/local/Ascend"'),
        ("ASCEND_RT_VISIBLE_DEVICES", "0,1,2-5"),
        ("HCCL_ALGO", "level0:NA;level1:H-D_R"),
        ("HCCL_DETERMINISTIC", "true"),
        ("HCCL_SOCKET_IFNAME", "=eth0,enp5s0"),
        ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:250"),
        ("ACLSIM_SOC", "Ascend910B3"),
        ("ACLSIM_FAULTS", "npu1/*:flip@100000,aclnnMatmul:zeros"),
        ("ACLSIM_FAULTS", "reducesum:long@1024"),
        ("ACLSIM_MEMORY", "512M"),
        ("ASCEND_LAUNCH_BLOCKING", "1"),
    ],
)
def test_what_helps_to_diagnose_is_shown(name: str, value: str) -> None:
    assert visible_value(name, value) == value


COMMANDS = [
    ["--api-key", SECRET], [f"--api-key={SECRET}"], [f"https://host/#{SECRET}"],
    ["-c", f"key = '{SECRET}'"], [f"TOKEN={SECRET}", "x"], ["--dsn", f"me:{SECRET}@db"],
    [SECRET], [f"-p{SECRET}"], ["--header", f"X: {SECRET}"], [f"model.secret={SECRET}"],
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_words_of_a_command_that_may_be_secrets_are_not_recorded(words: list[str]) -> None:
    command = visible_command(["python3", "-m", "train.main", *words, "--steps", "100"])
    assert SECRET not in " ".join(command)
    assert command[:3] == ["python3", "-m", "train.main"]
    assert command[-2:] == ["--steps", "100"]


def test_a_command_shows_its_options_numbers_and_files(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    command = ["/bin/sh", str(script), "--lr=1e-3", "--steps", "100", "-v", "--data=none"]
    assert visible_command(command) == [*command[:-1], f"--data={MASK}"]
    assert visible_command([]) == []


def test_what_is_not_shown_is_concealed_wherever_it_is_quoted() -> None:
    environ = {"ASCEND_HOME_PATH": f"https://u/#{SECRET}", "NPU_X": SECRET, "NPU_FLAG": "1"}
    where = Path(environ["ASCEND_HOME_PATH"])
    cause = Cause("error", f"no folder {where}", f"{SECRET}?", repr(environ["ASCEND_HOME_PATH"]))
    visible = concealed({"causes": (cause,), "n": [1, f"a{SECRET}"]}, environ)
    assert visible == {"causes": (Cause("error", f"no folder {MASK}", f"{MASK}?", f"'{MASK}'"),),
                     "n": [1, f"a{MASK}"]}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://me:hunter2@host/x", f"https://{MASK}@host/x"),
        ("https://hunter2@host/x", f"https://{MASK}@host/x"),
        ("obs?token=hunter2&a=1", f"obs?token={MASK}&a=1"),
        ("https://me:hun@ter2@host/x", f"https://{MASK}@host/x"),
        ("Authorization: Bearer hunter2hunter2", f"Authorization: {MASK}"),
        ("authorization=hunter2", f"authorization={MASK}"),
        ("Bearer hunter2.hunter2", f"Bearer {MASK}"),
        ('{"db_password": "hunter2", "n": 3}', f'{{"db_password": "{MASK}", "n": 3}}'),
        ("{'auth': 'hunter2'}", f"{{'auth': '{MASK}'}}"),
        ("run --password hunter2 --n 3", f"run --password {MASK} --n 3"),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----", MASK),
        ("-----BEGIN PRIVATE KEY-----\nhunter2", MASK),
        ("ghp_hunter2hunter2hunter2", MASK),
        ("glpat-hunter2hunter2hunter2", MASK),
        ("xoxb-1234567890-hunter2hunter2", MASK),
        ("sk_live_hunter2hunter2hunter2", MASK),
        (
            "https://hooks.slack.com/services/T0/B0/hunter2",
            f"https://hooks.slack.com/services/{MASK}",
        ),
        ("Cookie: a=1; session=hunter2", f"Cookie: {MASK}"),
        ("Authorization: Digest username=u, response=hunter2", f"Authorization: {MASK}"),
        ('{"token": ["a", "hunter2"], "n": 3}', f'{{"token": {MASK}, "n": 3}}'),
        ('{"password": {"value": "hunter2"}}', f'{{"password": {MASK}}}'),
        (r"{\"password\":\"hunter2\"}", rf"{{\"password\":\"{MASK}\"}}"),
        ("curl -u user:hunter2 host", f"curl -u user:{MASK} host"),
        ("mysql -u root -phunter2 db", f"mysql -u root -p{MASK} db"),
        ("sshpass -p hunter2 ssh host", f"sshpass -p {MASK} ssh host"),
        ("machine h login u password hunter2", f"machine h login u password {MASK}"),
        ("user:hunter2@host:/path", f"user:{MASK}@host:/path"),
        ("/usr/local/Ascend/lib64:/opt", "/usr/local/Ascend/lib64:/opt"),
        ("level=3,mode:fast", "level=3,mode:fast"),
    ],
)
def test_a_secret_inside_a_value_is_masked(value: str, expected: str) -> None:
    assert masked(value) == expected


def test_only_variables_that_concern_cann_are_shown() -> None:
    environ = {
        "ASCEND_HOME_PATH": "/a",
        "LD_LIBRARY_PATH": "/b",
        "HOME": "/root",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "ACL_LAUNCH_BLOCKING": "1",
        "HCCL_TOKEN": "hunter2",
    }
    assert masked_variables(environ) == {
        "ACL_LAUNCH_BLOCKING": "1",
        "ASCEND_HOME_PATH": "/a",
        "HCCL_TOKEN": MASK,
        "LD_LIBRARY_PATH": "/b",
    }


def test_a_long_value_is_masked_in_linear_time() -> None:
    assert masked("a" * 50_000) == "a" * 50_000
    for piece in ("key=[", "-u a", "mysql ", "a:", '"token" ', "eyJaaaaaaaa.", "cookie "):
        masked(piece * 2_000)


def test_every_kind_of_fault_that_the_simulator_plants_is_shown() -> None:
    source = Path(__file__).parents[2] / "aclnn_bindings/simulator/src/nnopbase/fault_plan.cpp"
    kinds = set(re.findall(r'\{"(\w+)", Fault::', source.read_text()))
    assert kinds == set(FAULTS.split("|"))
