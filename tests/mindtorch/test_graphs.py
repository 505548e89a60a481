"""torch.npu.NPUGraph: a captured step replays to the numbers of the step itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mindtorch as torch
from mindtorch import nn

pytestmark = pytest.mark.skipif(not torch.npu.is_available(), reason="no NPU and no simulator")


class Step:
    """One step of training on the batch in `inputs` and `targets`."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("npu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.inputs = torch.zeros(6, 8, device="npu")
        self.targets = torch.zeros(6, 4, device="npu")

    def __call__(self) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss


def losses(step: Step, run: Callable[[], Any]) -> list[float]:
    torch.manual_seed(7)
    seen = []
    for _ in range(5):
        step.inputs.copy_(torch.randn(6, 8))
        step.targets.copy_(torch.randn(6, 4))
        seen.append(run().item())
    return seen


def prepared() -> Step:
    """A step that ran twice on zeros, so that momentum is there."""
    step = Step()
    step()
    step()
    return step


def test_a_captured_step_trains_to_the_same_numbers() -> None:
    eager = prepared()
    expected = losses(eager, eager)
    step, graph = prepared(), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        assert torch.npu.is_current_stream_capturing()
        loss = step()
    assert not torch.npu.is_current_stream_capturing()

    def replay() -> Any:
        graph.replay()
        # What others allocate, and an emptied cache, leave the graph's memory alone.
        torch.npu.empty_cache()
        torch.full((512,), 7.0, device="npu")
        return loss

    assert losses(step, replay) == expected
    graph.reset()
    assert repr(graph) == "<torch.npu.NPUGraph empty>"


def test_captured_work_does_not_run_before_the_replay() -> None:
    x, graph = torch.zeros(3, device="npu"), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        x += 1
    assert x.tolist() == [0, 0, 0]
    graph.replay()
    graph.replay()
    assert x.tolist() == [2, 2, 2]


@pytest.mark.parametrize("forked", [False, True])
def test_a_tensor_from_before_may_end_in_a_capture(forked: bool) -> None:
    """Its memory has no event in the capture, which a query would end."""
    x, graph = torch.zeros(3, device="npu"), torch.npu.NPUGraph()
    side = torch.npu.Stream()
    before = [torch.full((512,), float(k), device="npu") for k in range(3)]
    with torch.npu.graph(graph):
        main = torch.npu.current_stream()
        for _ in range(3):
            side.wait_stream(main)
            with torch.npu.stream(side if forked else main):
                x += before.pop()[:3]
            main.wait_stream(side)
            torch.zeros(512, device="npu")  # looks for memory that has become free
    graph.replay()
    graph.replay()
    assert x.tolist() == [6, 6, 6]
    assert torch.full((512,), 5.0, device="npu").sum().item() == 2560


def test_a_value_that_is_read_while_capturing_is_refused_and_harms_nothing() -> None:
    x = torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="being captured"), torch.npu.graph(torch.npu.NPUGraph()):
        x.sum().item()
    assert (x + 1).tolist() == [2, 2, 2]


def test_captures_end_when_their_device_is_restarted() -> None:
    x, graph = torch.ones(2, device="npu"), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        x + 1
    torch.npu.restart_device(0)
    assert (torch.ones(2, device="npu") + 1).tolist() == [2.0, 2.0]


def test_random_operators_are_refused_in_a_capture() -> None:
    graph = torch.npu.NPUGraph()
    context = torch.npu.graph(graph)
    context.__enter__()
    torch.rand(3, device="npu")
    with pytest.raises(NotImplementedError, match="random operators"):
        context.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="there is no capture"):
        graph.replay()


def test_wrong_uses_are_named() -> None:
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError, match="default stream"):
        graph.capture_begin()
    with pytest.raises(ValueError, match="capture_error_mode 'lax' is unknown"):
        graph.capture_begin(capture_error_mode="lax")
    with pytest.raises(TypeError, match="pool must be what graph_pool_handle"):
        graph.capture_begin(pool=1)
    with pytest.raises(RuntimeError, match="capture_begin comes first"):
        graph.capture_end()
    with torch.npu.graph(graph):
        torch.zeros(1, device="npu").add_(1)
    with (
        pytest.raises(RuntimeError, match="make a new graph"),
        torch.npu.stream(torch.npu.Stream()),
    ):
        graph.capture_begin()


def test_a_graph_says_what_it_holds(tmp_path: Path) -> None:
    x, graph = torch.ones(3, device="npu"), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        x.mul_(2)
    graph.debug_dump(str(tmp_path / "graph.json"))
    names = [task["name"] for task in json.loads((tmp_path / "graph.json").read_text())["tasks"]]
    assert any(name.startswith("aclnnInplaceMul") for name in names), names


def trained(graphed: bool) -> list[float]:
    """Losses of a network whose body may be graphed, with gradients of two batches summed up."""
    torch.manual_seed(3)
    body = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU()).to("npu")
    head = nn.Linear(16, 4).to("npu")
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    if graphed:
        sample = torch.zeros(6, 8, device="npu", requires_grad=True)
        body = torch.npu.make_graphed_callables(body, (sample,), pool=torch.npu.graph_pool_handle())
    torch.manual_seed(7)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        for _ in range(2):
            inputs = torch.randn(6, 8).npu().requires_grad_()
            loss = nn.functional.mse_loss(head(body(inputs)), torch.randn(6, 4).npu())
            loss.backward()
            seen += [loss.item(), inputs.grad.sum().item()]
        optimizer.step()
    body.eval()
    return [*seen, body(torch.ones(2, 8).npu()).sum().item()]  # another shape, as in eager mode


def test_a_graphed_module_trains_to_the_same_numbers() -> None:
    assert trained(graphed=True) == trained(graphed=False)


def test_graphed_functions_keep_the_structure_of_what_they_return() -> None:
    def both(x: Any, y: Any) -> Any:
        return {"sum": x + y, "rest": (x * y, x.detach() * 2)}

    sample = (torch.ones(3, device="npu", requires_grad=True), torch.ones(3, device="npu"))
    first, second = torch.npu.make_graphed_callables((both, torch.sin), (sample, (sample[1],)))
    x, y = torch.arange(3.0, device="npu").requires_grad_(), torch.full((3,), 4.0, device="npu")
    once, again = first(x, y), first(x, y * 2)
    assert once["sum"].tolist() == [4, 5, 6]
    assert again["rest"][0].tolist() == [0, 8, 16]
    (once["sum"] * 10 + again["rest"][0]).sum().backward()
    assert not once["rest"][1].requires_grad
    assert x.grad.shape == (3,)
    assert second(y).tolist() == torch.sin(y).tolist()
    with pytest.raises(TypeError, match="takes 2 tensors, given 1"):
        first(x)
    with pytest.raises(TypeError, match="must be tensors, given float"):
        torch.npu.make_graphed_callables(both, (1.0,))
    with pytest.raises(NotImplementedError, match="random operators"):
        torch.npu.make_graphed_callables(nn.Dropout(), (x,))


def test_a_graph_of_any_accelerator_takes_a_pool() -> None:
    pool, x = torch.npu.graph_pool_handle(), torch.ones(3, device="npu")
    first, second = torch.npu.NPUGraph(), torch.accelerator.Graph(pool=pool)
    with pytest.raises(RuntimeError, match="there is no capture"):
        second.pool()
    with torch.npu.graph(first, pool=pool):
        doubled = x * 2
    with torch.Stream("npu"), second:
        more = doubled + 1
    assert first.pool() == second.pool() == pool
    x.fill_(5)
    first.replay()
    torch.npu.synchronize()
    second.replay()
    assert more.tolist() == [11, 11, 11]
