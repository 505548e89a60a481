"""What torch.compile says where a function is no graph or a call in it fails: torch's words."""

import re
from importlib import import_module

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def condition(lib):
    return lambda x: x if x.sum() > 0 else -x


def loud(lib):
    return lambda x: (print("loud", x, sep=","), x)[1]


def asked(lib):
    def function(x):
        lib._dynamo.graph_break()
        return x

    return function


def disabled(lib):
    inner = lib.compiler.disable(lambda x: x, reason="slow")
    return lambda x: inner(x)


def backward(lib):
    return lambda x: x.sum().backward()


def product(lib):
    return lambda x: x @ x


def layer(lib):
    weight = lib.ones(5, 7)
    return lambda x: lib.nn.functional.linear(x, weight)


def sizes(lib):
    return lambda x: x.view(7)


def broadcast(lib):
    return lambda x: x + lib.ones(2).expand(5, 2)


@pytest.mark.parametrize("story", [condition, loud, asked, disabled, backward, product, layer,
                                   sizes, broadcast], ids=lambda s: s.__name__)  # fmt: skip
def test_failures_have_torchs_texts(story, caplog):
    texts = []
    for lib in (mindtorch, torch):
        lib._dynamo.reset()
        run = lib.compile(story(lib), backend="eager", fullgraph=True)
        with pytest.raises(RuntimeError) as failure:
            run(lib.ones(2, 3))
        text = re.sub(r"0x[0-9a-f]+|<(built-in )?function", "", str(failure.value))
        texts.append((type(failure.value).__name__, re.sub(r" at (?=>)", "", text)))
    assert texts[0] == texts[1]


def test_names_behind_breaks_counters_and_refused_recompiles_are_torchs():
    results = []
    for lib in (mindtorch, torch):
        dynamo, name = lib._dynamo, f"{lib.__name__}._dynamo"
        counters = import_module(f"{name}.utils").counters
        counters.clear()
        dynamo.reset()
        graphs = import_module(f"{name}.testing").EagerAndRecordGraphs()

        def function(x, lib=lib):
            y = x.sin()
            lib._dynamo.graph_break()
            return (y + 1).cos()

        run = lib.compile(function, backend=graphs)
        run(lib.ones(2))
        counts = [dict(counters[k]) for k in ("stats", "graph_break", "frames")]
        with lib.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError) as refusal:
            run(lib.ones(2, 2))
        results.append((counts, [g.code for g in graphs.graphs], str(refusal.value)))
    ours, theirs = results
    assert ours[:2] == theirs[:2]
    assert ours[2].partition("filename")[0] == theirs[2].partition("filename")[0]
