"""What libraries take from torch's private modules gives what it gives in torch."""

import importlib

import numpy as np
import pytest

import mindtorch
from tests.mindtorch.agreement import agree

torch = pytest.importorskip("torch", reason="torch is the oracle")


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.{name}")


def test_numpy_of_a_tensor_with_a_gradient_where_none_is_recorded():
    def run(lib):
        x = lib.ones(2, requires_grad=True)
        with lib.no_grad():
            return lib.tensor(x.numpy().tolist()), lib.tensor(np.asarray(x).tolist())

    agree(run)


def test_arange_by_its_end_alone():
    agree(lambda lib: (lib.arange(end=4), lib.arange(end=2.5), lib.arange(start=1, end=3)))


def test_a_class_may_change_its_class_inside_its_own_function():
    def run(lib):
        class Plain(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                plain = [a.as_subclass(lib.Tensor) if isinstance(a, cls) else a for a in args]
                return func(*plain, **(kwargs or {}))

        x = lib.ones(2).as_subclass(Plain)
        return x + 1, type(x + 1) is lib.Tensor, type(x.clone()) is lib.Tensor

    agree(run)


def test_any_class_may_have_a_divergence():
    class Other:
        pass

    for lib in (torch, mindtorch):
        register = module(lib, "distributions.kl").register_kl
        assert register(Other, lib.distributions.Normal)(len) is len
        with pytest.raises(TypeError):
            register(1, lib.distributions.Normal)


def test_triangles_as_vectors():
    def run(lib):
        utils = module(lib, "distributions.utils")
        x = lib.arange(18.0).reshape(2, 3, 3)
        vectors = [utils.tril_matrix_to_vec(x, d) for d in (-1, 0, 1)]
        back = [utils.vec_to_tril_matrix(v, d) for v, d in zip(vectors, (-1, 0, 1), strict=True)]
        return *vectors, *back, utils._sum_rightmost(x, 2), utils._sum_rightmost(x, 0)

    agree(run)


def test_optimizers_groups_and_values():
    def run(lib):
        x = [lib.ones(1), lib.zeros(2, dtype=lib.float64), lib.ones(3)]
        group = module(lib, "utils._foreach_utils")._group_tensors_by_device_and_dtype
        groups = group([x, [t * 2 for t in x]], with_indices=True)
        told = [(str(k[1]), [[t.sum().item() for t in ts] for ts in lists], list(indices))
                for k, (lists, indices) in groups.items()]  # fmt: skip
        return sorted(told)

    agree(run)


def test_seeds_of_numpy_in_workers():
    def run(lib):
        return [module(lib, "utils.data._utils.worker")._generate_state(s, w)
                for s, w in ((1, 0), (2**40 + 7, 3))]  # fmt: skip

    agree(run)


def test_coordinates_and_compressed_rows():
    def run(lib):
        rows = lib.tensor([0, 0, 2, 3])
        starts = lib._convert_indices_from_coo_to_csr(rows, 5)
        short = lib._convert_indices_from_coo_to_csr(rows, 5, out_int32=True)
        columns = lib.tensor([1, 2, 0, 1])
        back = lib._convert_indices_from_csr_to_coo(starts, columns)
        return starts, short, back

    agree(run)


def test_tensors_exchange_what_they_are():
    def run(lib):
        a, b = lib.nn.Parameter(lib.ones(2)), lib.arange(3.0)
        a.mark, b.other = 1, 2
        a.grad = lib.ones(2)
        seen = [a]
        lib.utils.swap_tensors(a, b)
        (b * 2).sum().backward()
        return (seen[0].detach(), b.detach(), b.grad, type(b) is lib.nn.Parameter, a.other, b.mark,
                a.requires_grad, b.requires_grad)  # fmt: skip

    agree(run)


def test_a_context_decorates_functions_and_generators():
    def run(lib):
        base = module(lib, "utils._contextlib")._DecoratorContextManager
        told = []

        class Telling(base):
            def __enter__(self):
                told.append("in")

            def __exit__(self, *_):
                told.append("out")

        @Telling()
        def once(x):
            told.append("once")
            return x

        @Telling()
        def many():
            told.append("first")
            got = yield 1
            told.append(got)
            yield 2

        values = [once(3)]
        generator = many()
        values += [next(generator), generator.send("sent")]
        told.append("between")
        return values, told

    agree(run)


def test_an_optimizer_that_wraps_another_gets_hooks():
    def run(lib):
        told = []

        class Wrapper(lib.optim.Optimizer):
            def __init__(self, inner):
                self.inner = inner
                self._optimizer_step_pre_hooks = {}
                self._optimizer_step_post_hooks = {1: lambda *_: told.append("post")}
                self._patch_step_function()

            def step(self):
                self.inner.step()

        p = lib.nn.Parameter(lib.ones(2))
        p.grad = lib.ones(2)
        Wrapper(lib.optim.SGD([p], lr=0.5)).step()
        return p.detach(), told

    agree(run)


def test_how_many_suffixes_of_a_printed_tensor():
    def run(lib):
        text = module(lib, "_tensor_str")
        with text.printoptions(precision=2):
            short = text._tensor_str(lib.tensor([1.23456, 2.0]), 7)
        return short, text._add_suffixes("Own(1", ["size=(1,)"], 4, force_newline=False)

    agree(run)


def test_a_tensor_of_a_module_is_exchanged_by_name():
    def run(lib):
        access = module(lib, "nn.utils._named_member_accessor").NamedMemberAccessor
        model = lib.nn.Sequential(lib.nn.Linear(2, 2))
        new = lib.ones(2, 2)
        before = access(model).swap_tensor("0.weight", new)
        kind = type(before).__name__
        return model[0].weight is new, kind, access(model).check_keys(["0.bias", "x"])

    agree(run)


def test_the_sizes_that_a_tracer_would_ask_about_are_known():
    def run(lib):
        shapes = module(lib, "fx.experimental.symbolic_shapes")
        return (shapes.guard_or_false(3 > 2), shapes.statically_known_true(1 > 2),
                module(lib, "fx.experimental.proxy_tensor").get_proxy_mode())  # fmt: skip

    agree(run)
