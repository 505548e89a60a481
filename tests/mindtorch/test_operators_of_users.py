"""Operators that users declare with torch.library are declared, called and refused as in torch."""

import importlib
from collections.abc import Sequence

import pytest
from agreement import agree


def inferred(t, annotations, mutates=(), returned=None, defaults=None):
    """The schema of a function with such annotations."""
    arguments = ", ".join(f"{n}=D[{n!r}]" if n in (defaults or {}) else n for n in annotations)
    scope = {"D": defaults}
    exec(f"def function({arguments}): pass", scope)
    function = scope["function"]
    function.__annotations__ = {**annotations, "return": returned}
    return t.library.infer_schema(function, mutates_args=mutates)


@pytest.mark.parametrize("mutates", [(), {"x"}, {"x", "xs"}, "unknown", "some", {"n"}, {"zz"}])
def test_a_schema_is_inferred_from_annotations(mutates):
    def run(t):
        annotations = {
            "x": t.Tensor, "xs": list[t.Tensor], "ys": Sequence[t.Tensor | None], "n": int,
            "f": float, "b": bool, "s": str, "d": t.dtype | None, "p": t.device,
            "k": int | float | bool, "l": list[int], "z": list[float] | None,
        }  # fmt: skip
        defaults = {"f": 1.5, "b": False, "s": "q", "d": None, "p": t.device("cpu"), "k": 2,
                    "l": None, "z": None}  # fmt: skip
        returned = tuple[t.Tensor, list[t.Tensor], int]
        try:
            return inferred(t, annotations, mutates, returned, defaults)
        except ValueError as error:
            return str(error).split(" Got ")[0]

    agree(run)


CALLS = {
    "as declared": lambda t, op: op(t.ones(2), 3),
    "by name": lambda t, op: op(x=t.ones(2), n=1),
    "a number as a tensor": lambda t, op: op(t.ones(2), t.tensor(3.0)),
    "no tensor": lambda t, op: op("a"),
    "a list of it": lambda t, op: op([t.ones(2)]),
    "a word for a number": lambda t, op: op(t.ones(2), "s"),
    "a fraction for a whole": lambda t, op: op(t.ones(2), n=1.5),
    "too many": lambda t, op: op(t.ones(2), 3.0, 1),
    "far too many": lambda t, op: op(t.ones(2), 3.0, 1, 2),
    "nothing": lambda t, op: op(),
    "an unknown name": lambda t, op: op(t.ones(2), zz=1),
    "twice": lambda t, op: op(t.ones(2), x=t.ones(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_bound_to_the_schema(name):
    def run(t):
        library = t.library.Library(f"bound_{name.replace(' ', '_')}", "FRAGMENT")
        library.define("mul(Tensor x, float k=2.0, *, SymInt? n=None) -> Tensor")
        library.impl("mul", lambda x, k=2.0, *, n=None: x * k, "CompositeExplicitAutograd")
        op = getattr(t.ops, library.ns).mul
        try:
            return str(op.default._schema), CALLS[name](t, op)
        except RuntimeError as error:
            return str(error)
        finally:
            library._destroy()

    agree(run)


def test_an_overload_is_chosen_by_its_schema():
    def run(t):
        library = t.library.Library("overloaded", "FRAGMENT")
        library.define("pick.Tensor(Tensor x) -> Tensor")
        library.define("pick.Scalar(float x) -> Tensor")
        library.impl("pick.Tensor", lambda x: x + 1, "CompositeExplicitAutograd")
        library.impl("pick.Scalar", lambda x: t.tensor(x), "CompositeExplicitAutograd")
        pick = t.ops.overloaded.pick
        texts = [pick(t.ones(1)).tolist(), pick(2.0).item(), pick.overloads()]
        try:
            pick("s")
        except RuntimeError as error:
            texts.append(str(error))
        library._destroy()
        return texts

    agree(run)


@pytest.mark.parametrize("name", ["add.Tensor", "add.Scalar", "mm.default", "relu_.default",
                                  "cat.default"])  # fmt: skip
def test_an_operator_of_torch_tells_its_schema(name):
    def run(t):
        base, overload = name.split(".")
        schema = getattr(getattr(t.ops.aten, base), overload)._schema
        arguments = [(a.name, str(a.type), a.default_value, a.kwarg_only) for a in schema.arguments]
        return str(schema), schema.name, schema.is_mutable, arguments

    agree(run)


def test_a_rule_of_a_user_maps_an_operator():
    def run(t):
        def double(x: t.Tensor) -> t.Tensor:
            return x * 2

        op = t.library.custom_op("mapped::double", double, mutates_args=())
        op.register_vmap(lambda info, in_dims, x: (x * 2 + info.batch_size, in_dims[0]))
        return t.func.vmap(op)(t.ones(3, 2)), t.func.vmap(op, in_dims=1)(t.ones(3, 2))

    agree(run)


def test_a_rule_of_a_function_is_told_where_batches_are():
    def run(t):
        told = []

        class Scaled(t.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y.sum()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad * y.sum(), (grad * x).sum().expand(y.shape)

            @staticmethod
            def vmap(info, in_dims, x, y):
                told.append((info.batch_size, in_dims, tuple(x.shape), tuple(y.shape)))
                x = x.movedim(in_dims[0], 0)
                if in_dims[1] is None:
                    return x * y.sum(), 0
                return x * y.movedim(in_dims[1], 0).flatten(1).sum(1, keepdim=True), 0

        x, y = t.arange(6.0).view(2, 3), t.arange(12.0).view(3, 2, 2)
        results = [
            t.func.vmap(Scaled.apply, in_dims=dims)(x, b)
            for dims, b in (
                ((1, 0), y),
                ((-1, None), y),
                ((0, -1), y),
                ((1, 2), y.permute(2, 1, 0)),
            )
        ]
        results.append(t.func.vmap(lambda x, y: Scaled.apply(x + 1, y), (1, 0))(x, y))
        results.append(t.func.vmap(lambda x, y: Scaled.apply(x.mul_(2), y), (1, 0))(x.clone(), y))
        leaf = x.clone().requires_grad_()
        t.func.vmap(Scaled.apply, (1, 0))(leaf, y).sum().backward()
        return results, leaf.grad, told

    agree(run)


def test_a_write_is_declared_and_seen():
    def run(t):
        def bump(x: t.Tensor) -> None:
            x.add_(1)

        op = t.library.custom_op("written::bump", bump, mutates_args={"x"})
        x = t.ones(2)
        result = op(x), x, x._version
        try:
            op.register_autograd(lambda ctx, grad: grad)
        except RuntimeError as error:
            return *result, str(error)

    agree(run)


# What programs ask of operators; each is given torch, an operator and one without a derivative.
ASKED = {
    "init_fn": lambda t, f, g: (f._init_fn.__name__, f._lib.ns, f._opoverload._opname, repr(f)),
    "views": lambda t, f, g: (t.ops.aten.view.default.is_view, f._opoverload.is_view),
    "tags": lambda t, f, g: [repr(tag) for tag in f._opoverload.tags],
    "overloads": lambda t, f, g: [getattr(t.ops.aten, n).overloads() for n in
                                  ("add", "add_", "mm", "relu", "relu_", "sum", "topk", "where")],
    "each": lambda t, f, g: list(t.ops.aten.mm),
    "no overload": lambda t, f, g: t.ops.aten.add.Foo,
    "none of its own": lambda t, f, g: t.ops.asked.f.Foo,
    "names": lambda t, f, g: (t.ops.asked.__name__, t.ops.aten.add._qualified_op_name),
    "a word": lambda t, f, g: t.ops.aten.add.Tensor("a", 1),
    "too few": lambda t, f, g: t.ops.aten.mm.default(t.ones(2, 2)),
    "too many": lambda t, f, g: t.ops.aten.relu.default(t.ones(2), 1),
    "a device": lambda t, f, g: f.register_kernel("foo", str),
    "no operator": lambda t, f, g: t.library.register_fake("asked::zz", lambda x: x),
    "a number": lambda t, f, g: t.library.register_kernel(3, "cpu", lambda x: x),
    "no function": lambda t, f, g: t.library.Library("asked", "FRAGMENT").impl("f", 3, "CPU"),
    "element by element": lambda t, f, g: t.vmap(f)(t.ones(3, 2)),
    "a fake": lambda t, f, g: f(t.ones(2, device="meta")).shape,
    "no fake": lambda t, f, g: g(t.ones(2, device="meta")),
    "a gradient of nothing": lambda t, f, g: f(t.ones(2, requires_grad=True)).sum().backward(),
    "switched off": lambda t, f, g: [f.set_kernel_enabled("cpu", False).__enter__(), f(t.ones(1))],
}  # fmt: skip


def test_what_programs_ask_of_operators():
    def run(t):
        def double(x: t.Tensor) -> t.Tensor:
            return x.detach() * 2

        f = t.library.custom_op("asked::f", double, mutates_args=())
        g = t.library.custom_op("asked::g", double, mutates_args=())
        f.register_fake(lambda x: t.empty_like(x))
        f.register_autograd(lambda ctx, grad: (grad, grad))
        answers = {}
        for name, ask in ASKED.items():
            try:
                answers[name] = ask(t, f, g)
            except Exception as error:
                answers[name] = type(error).__name__, str(error)
            if not isinstance(answers[name], t.Tensor):
                answers[name] = str(answers[name]).replace("mindtorch.", "torch.")
        return answers

    agree(run)


def test_modes_classes_and_graphs_see_operators_and_not_what_these_run():
    def run(t):
        Tensor = t.Tensor
        dbl = t.library.custom_op("seen::dbl", lambda x, k=2.0: x * k, mutates_args=(),
                                  schema="(Tensor x, float k=2.) -> Tensor")  # fmt: skip
        library = t.library.Library("seen2", "DEF")
        library.define("cat(Tensor[] xs, int d=0) -> Tensor")
        library.impl("cat", lambda xs, d=0: t.cat(xs, d), "CompositeImplicitAutograd")
        names = []

        def note(func, types, args=(), kwargs=None):
            names.append((type(func).__name__, str(func), len(types), kwargs))

        class Mode(t.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                note(func, types, args, kwargs)
                return func(*args, **(kwargs or {}))

        class Sub(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                note(func, types, args, kwargs)
                return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs or {})

        class Refuses(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        def plain(call):
            return lambda x: call(x)

        x, ops = t.ones(2), t.ops
        calls = [
            lambda x: ops.seen.dbl(x, 0.5), lambda x: ops.seen.dbl.default(x, k=0.5), dbl,
            lambda x: ops.seen2.cat([x, x]), ops.aten.relu, ops.aten.relu.default,
            lambda x: ops.aten.add.Tensor(x, 1, alpha=2),
        ]  # fmt: skip
        for call in calls:
            with Mode():
                call(x)
            names.append(type(call(x.as_subclass(Sub))).__name__)
            graph = importlib.import_module(f"{t.__name__}.fx").symbolic_trace(plain(call)).graph
            nodes = [(n.name, str(n.target), n.args[1:], n.kwargs) for n in graph.nodes]
            names.append(nodes[:-1])
            try:
                call(x.as_subclass(Refuses))
            except TypeError as error:
                names.append(str(error).partition(";")[0])
        library._destroy()
        return names

    agree(run)


SCHEMAS = (
    "a(Tensor x -> Tensor", "a(Tensor x) Tensor", "a Tensor x -> Tensor", "a(Tensor) -> Tensor",
    "a(Tensr x) -> Tensor", "a(Tensor x) -> ", "a(Tensor x)", "a", "", "a(Tensor x, int n=b) -> ()",
    "a(Tensor x, int[] n=[1,2) -> ()", "a(Tensor(a! x) -> ()", "a(Tensor x) -> (Tensor, Tensor",
    "a(Tensor x) -> Tensor, Tensor", "a(Tensor x, double d) -> ()", "a(Tensor x; int n) -> ()",
    "1a(Tensor x) -> ()", "other::a(Tensor x) -> ()", "a(Tensor x, Dict n) -> ()",
    "a(Tensor?[] t, int? n=None, float f=-1.5e3, str s='q', int[] u=[], *, Device? d=None) -> ()",
    "b(Tensor(a!) x, SymInt[2] n=1, Scalar k=1.0) -> (Tensor(a!) y, Tensor[] z)",
)  # fmt: skip


def test_schemas_are_read_and_refused_as_in_torch():
    def run(t):
        library, said = t.library.Library("schemas_read", "DEF"), []
        for text in SCHEMAS:
            try:
                said.append(library.define(text))
            except RuntimeError as error:
                said.append(str(error).partition(" at ")[0])
        for call in (
            lambda: t.library.define("no_namespace", "(Tensor x) -> Tensor"),
            lambda: t.library.define("schemas_read::b", "Tensor x -> Tensor"),
            lambda: t.library.Library("schemas_read", "DEF"),
            lambda: t.library.Library("schemas_read", "IMPL").define("c(Tensor x) -> Tensor"),
            lambda: t.ops.schemas_read.b(t.ones(1)),
        ):
            try:
                call()
            except (RuntimeError, ValueError) as error:
                said.append(str(error).splitlines()[0].partition(" at ")[0])
        return said

    agree(run)


def test_a_text_is_parsed_as_a_schema():
    def run(t):
        said = []
        for text in ("f() -> ()", "s::f.o(Tensor(a!) x, *, Scalar k=1, float y=2) -> Tensor(a!)",
                     "f(SymInt[2] n=1, int[] m=[1,2], MemoryFormat? g=None) -> (Tensor r, int[])",
                     "f", "f(Tensor x", "f(Foo x) -> Tensor", "f(int n) -> int more"):  # fmt: skip
            try:
                f = t._C.parse_schema(text)
            except RuntimeError as error:
                said.append(str(error))
                continue
            arguments = [(a.name, str(a.type), a.default_value, a.is_out) for a in f.arguments]
            returned = [(r.name, str(r.type), r.is_write) for r in f.returns]
            said.append((str(f), f.name, f.overload_name, arguments, returned, f.is_mutable))
        return said

    agree(run)


def test_the_older_form_of_impl_and_autocast_are_torchs():
    def run(t):
        library = t.library.Library("impl_older", "FRAGMENT")
        library.define("twice(Tensor x) -> Tensor")
        t.library.impl(library, "twice", "CompositeImplicitAutograd")(lambda x: x * 2)

        def half(x):
            return x / 2

        half.__annotations__ = {"x": t.Tensor, "return": t.Tensor}
        operator = t.library.custom_op("impl_older::half", half, mutates_args=())
        operator.register_autocast("cpu", t.bfloat16)
        with t.autocast("cpu"):
            kinds = [operator(t.ones(2)).dtype, operator(t.ones(2, dtype=t.float64)).dtype]
        return t.ops.impl_older.twice(t.ones(2)).tolist(), [str(k) for k in kinds]

    agree(run)


OF_ATEN = """
l1_loss(x, y, 2); nll_loss(x, i, None, 2); kl_div(x, y, 2); kl_div(x, y)
kl_div(x, y, 0, log_target=True); poisson_nll_loss(x, y, True, False, 1e-8, 2)
hinge_embedding_loss(x, s, 1.0, 2); _unique2(i, True, True); margin_ranking_loss(x, y, s, 0.0, 2)
cosine_embedding_loss(x, y, s[0], 0.0, 2); multi_margin_loss(x, i)
triplet_margin_loss(x, y, s, 1.0, 2.0, 1e-6, False, 2); multi_margin_loss(x, i, 1, 1, None, 2)
multilabel_margin_loss(x, z, 2)
ctc_loss(x[:, None].log_softmax(2), z[:1, :1] + 1, i[3:], i[1:2], 0, 2)
embedding_bag(x, i, i[:3:2], False, 1); embedding_bag(x, i, i[:3:2])
upsample_nearest2d(x[None, None], [8, 6]); upsample_nearest1d(x[None], [8], 2.0)
_upsample_nearest_exact1d(x[None], [6]); split(x, 2); unbind(x); split_with_sizes(x, [1, 3])
_foreach_add([x, y], 1); _foreach_mul_([x.clone()], 2.0); is_same_size(x, y); size(x); sym_size(x)
sym_size.int(x, 0); sym_numel(x); sym_stride(x); unique_dim(x, 0); _cdist_forward(x, y, 2.0, None)
elu_backward(x, 1.0, 1.0, 1.0, False, y); leaky_relu_backward(x, y, 0.1, False)
_linalg_det(x + s.tril()); _linalg_slogdet(x + s.tril()); unique_consecutive(i)
unique_consecutive(i, True); max_unpool2d(x[None], z[None], [4, 5])
native_layer_norm_backward(x, y, [4], m, m, None, None, [True, False, False])
scatter_.value(x.clone(), 1, z[:, :1], 1.0); resize_(x.clone(), [2, 2])
tril_indices(2, 2, pin_memory=False)
""".replace("\n", ";").split(";")  # fmt: skip


@pytest.mark.parametrize("call", [c.strip() for c in OF_ATEN if c.strip()])
@pytest.mark.filterwarnings("ignore")
def test_operators_of_aten_take_and_give_what_torchs_do(call):
    def run(t):
        rows = t.arange(16.0).reshape(4, 4)
        scope = {"x": (rows * 0.7).sin(), "y": (rows * 1.3).cos().abs(), "s": t.ones(4, 4)}
        scope |= {"m": t.ones(4, 1), "i": t.tensor([0, 1, 2, 3])}
        scope |= {"z": t.zeros(4, 4, dtype=t.int64), "a": t.ops.aten}
        return repr(eval(f"a.{call}", scope))

    agree(run)


def test_operators_under_torch_func_refuse_gradients_and_drop_tangents():
    def run(t):
        with t.library._scoped_library("derived", "FRAGMENT"):
            twice = t.library.custom_op("derived::twice", lambda x: x * 2, mutates_args=(),
                                        schema="(Tensor x) -> Tensor")  # fmt: skip
            twice.register_autograd(lambda ctx, grad: grad * 2)

            class Own(t.autograd.Function):
                forward, backward = (staticmethod(lambda ctx, x: x * 2) for _ in range(2))

            x, y, func = t.ones(2), t.ones(3), t.func
            for op in (twice, Own.apply):
                for call in (
                    lambda op=op: func.grad(lambda x: op(x).sum())(x),
                    lambda op=op: func.grad(lambda x: (op(y).sum() * x).sum())(x),
                    lambda op=op: t.vmap(lambda x: op(y) * x)(x),
                    lambda op=op: func.jvp(op, (x,), (x,)),
                    lambda op=op: func.hessian(lambda x: op(x).sum())(x),
                ):
                    try:
                        yield call()
                    except RuntimeError as error:
                        yield str(error)

    agree(lambda t: list(run(t)))
