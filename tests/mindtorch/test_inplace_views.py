"""In-place views: geometry, versions, histories and refusals are torch's."""

import pytest

import mindtorch

oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

# name, arguments, shape of the tensor
FORMS = [
    ("transpose_", (0, 1), (2, 3)),
    ("transpose_", (-1, 0), (2, 1, 3)),
    ("swapaxes_", (0, 1), (2, 3)),
    ("swapdims_", (1, 2), (2, 3, 4)),
    ("t_", (), (2, 3)),
    ("t_", (), (3,)),
    ("squeeze_", (), (1, 3, 1)),
    ("squeeze_", (0,), (1, 3, 1)),
    ("squeeze_", ((0, 2),), (1, 3, 1)),
    ("unsqueeze_", (-1,), (2, 3)),
    ("unsqueeze_", (0,), ()),
    ("as_strided_", ((2, 2), (1, 2)), (2, 3)),
]


def numbers(torch, shape):
    count = 1
    for n in shape:
        count *= n
    return torch.arange(1.0, count + 1).reshape(shape).clone()


def refusal(action):
    with pytest.raises(RuntimeError) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize(("name", "args", "shape"), FORMS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_values_strides_and_version_follow(name, args, shape, device):
    def facts(torch, tensor):
        result = getattr(tensor, name)(*args)
        assert result is tensor
        return tensor.tolist(), tuple(tensor.shape), tensor.stride(), tensor._version

    ours = facts(mindtorch, numbers(mindtorch, shape).to(device))
    assert ours == facts(oracle, numbers(oracle, shape))


@pytest.mark.parametrize(("name", "args", "shape"), FORMS)
@pytest.mark.parametrize("of_view", [False, True])
def test_gradients_pass_through(name, args, shape, of_view):
    def gradient(torch):
        leaf = numbers(torch, (2, *shape) if of_view else shape).requires_grad_()
        made = leaf * 2
        target = made[1] if of_view else made
        getattr(target, name)(*args)
        (target * numbers(torch, tuple(target.shape))).sum().backward()
        return leaf.grad.tolist()

    assert gradient(mindtorch) == gradient(oracle)


@pytest.mark.parametrize("name", ["transpose_", "swapaxes_"])
def test_a_write_after_the_view_reaches_the_gradient(name):
    def gradient(torch):
        leaf = numbers(torch, (2, 3)).requires_grad_()
        made = leaf * leaf
        getattr(made, name)(0, 1)
        made.mul_(numbers(torch, (3, 2)))
        made.sum().backward()
        return leaf.grad.tolist()

    assert gradient(mindtorch) == gradient(oracle)


@pytest.mark.parametrize("of_view", [False, True])
def test_a_leaf_that_requires_grad_is_refused(of_view):
    def act(torch):
        leaf = numbers(torch, (1, 2, 3)).requires_grad_()
        (leaf[0] if of_view else leaf).transpose_(0, 1)

    assert refusal(lambda: act(mindtorch)) == refusal(lambda: act(oracle))


def test_a_tensor_saved_for_backward_is_seen_to_have_changed():
    def act(torch):
        leaf = numbers(torch, (2, 3)).requires_grad_()
        made = leaf * 1
        product = made * made
        made.t_()
        product.sum().backward()

    assert "modified by an inplace" in refusal(lambda: act(mindtorch))
    assert "modified by an inplace" in refusal(lambda: act(oracle))


def test_gradients_off_leaves_a_tensor_without_history():
    leaf = numbers(mindtorch, (2, 3)).requires_grad_()
    with mindtorch.no_grad():
        leaf.t_()
    assert leaf.is_leaf
    assert leaf.shape == (3, 2)
