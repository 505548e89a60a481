"""Variables that concern CANN are shown, and no secret with them."""

from __future__ import annotations

import pytest

from aclnn_bindings.install.environment import MASK, masked, masked_variables


@pytest.mark.parametrize(
    "name",
    ["ASCEND_API_TOKEN", "HCCL_SECRET", "NPU_PASSWORD", "MINDTORCH_ACCESS_KEY", "ASCEND_AK",
     "ascend_credential", "HCCL_PWD", "NPU_PASS", "ASCEND_AUTHORIZATION", "ACL_COOKIE"],
)  # fmt: skip
def test_a_variable_named_like_a_secret_is_masked(name: str) -> None:
    assert masked(name, "hunter2") == MASK


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
    assert masked("ASCEND_SOURCE", value) == expected


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
    assert masked("ASCEND_SOURCE", "a" * 50_000) == "a" * 50_000
    for piece in ("key=[", "-u a", "mysql ", "a:", '"token" ', "eyJaaaaaaaa.", "cookie "):
        masked("ASCEND_SOURCE", piece * 2_000)
