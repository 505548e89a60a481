"""The documented manifests of Kubernetes are valid, and their commands are ours."""

import shlex
from pathlib import Path

import click
import pytest
from mindtorch_npu.conformance.cases import shard
from mindtorch_npu.main import group

kubernetes_validate = pytest.importorskip("kubernetes_validate")
yaml = pytest.importorskip("yaml")
FOLDER = Path(__file__).parents[3] / "docs" / "kubernetes"
MANIFESTS = [
    pytest.param(data, id=f"{path.stem}-{data['kind']}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for data in yaml.safe_load_all(path.read_text())
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_manifests_meet_the_schema_of_kubernetes(manifest):
    kubernetes_validate.validate(manifest, "1.31", strict=True)


def test_a_misspelt_field_is_refused_by_the_validator():
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(
            {"apiVersion": "batch/v1", "kind": "Job", "spec": {"completion": 3}},
            "1.31",
            strict=True,
        )


def containers(manifest):
    spec = manifest["spec"]
    pod = spec.get("template", {}).get("spec", spec)
    return [*pod.get("initContainers", ()), *pod.get("containers", ())]


def commands():
    """(words) of every call of mindtorch-npu in the manifests."""
    for manifest in [parameter.values[0] for parameter in MANIFESTS]:
        for one in containers(manifest):
            words = [*one.get("command", ()), *one.get("args", ())]
            if words[:1] == ["mindtorch-npu"]:
                yield words[1:]
            for text in words[2:] if words[:2] == ["sh", "-c"] else ():
                for line in text.replace("\\\n", " ").splitlines():
                    if line.strip().startswith("mindtorch-npu "):
                        yield shlex.split(line)[1:]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_commands_of_manifests_have_options_that_there_are(words):
    """Only names: files and shards are those of a cluster."""
    context = click.Context(group)
    command = group.get_command(context, words[0])
    assert command is not None
    command = getattr(command, "modes", {}).get(words[1], command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


def test_shards_of_an_indexed_job_cover_every_case():
    (job,) = [m.values[0] for m in MANIFESTS if m.values[0]["spec"].get("completionMode")]
    count = job["spec"]["completions"]
    (word,) = [w for w in containers(job)[0]["args"] if w.startswith("--shard=")]
    texts = [word.removeprefix("--shard=").replace("$(JOB_COMPLETION_INDEX)", str(i))
             for i in range(count)]  # fmt: skip
    assert {shard.parse(text).number for text in texts} == set(range(1, count + 1))
    assert {shard.parse(text).count for text in texts} == {count}


def test_every_try_of_an_index_has_a_journal_of_its_own_and_the_report_waits():
    """A pod that takes another one's place would be refused its journal: exit code 2, FailJob."""
    jobs = [m.values[0] for m in MANIFESTS if m.values[0]["kind"] == "Job"]
    (check,) = [job for job in jobs if job["spec"].get("completionMode")]
    (one,) = containers(check)
    (word,) = [w for w in one["args"] if w.startswith("--journal=")]
    fields = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in one["env"]}
    assert fields[word.partition("$(")[2].partition(")")[0]] == "metadata.name"
    assert [job["spec"].get("suspend", False) for job in jobs if job is not check] == [True]
