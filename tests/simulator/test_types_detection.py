"""Types without an ACLNN form: boxes, regions, random choices, calibration.

References are other formulations than the kernels': torch's autograd for gradients, areas of
rotated boxes by counting points, suppression by a mask.
"""

import math

import numpy as np
import pytest
from compiled import install
from numpy_harness import Array, Ops, Out
from type_harness import Types

torch = pytest.importorskip("torch", reason="torch is the oracle")

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def types(nops: Ops) -> Types:
    return Types(nops, install())


def boxes(*shape: int) -> Array:
    """Corners x1 < x2, y1 < y2 in the last axis."""
    low = RNG.uniform(0, 60, (*shape, 2))
    return np.concatenate([low, low + RNG.uniform(5, 40, (*shape, 2))], -1).astype(np.float32)


def corners_of(middle: torch.Tensor) -> torch.Tensor:
    x, y, w, h = middle
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2])


def score(kind: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Overlap of columns of corners, as the papers define it."""
    low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
    inter = (high - low).clamp(min=0).prod(0)
    areas = [(t[2] - t[0]) * (t[3] - t[1]) for t in (a, b)]
    union = areas[0] + areas[1] - inter
    hull = torch.maximum(a[2:], b[2:]) - torch.minimum(a[:2], b[:2])
    if kind == "GIoU":
        return inter / union - (hull.prod(0) - union) / hull.prod(0)
    apart = ((a[:2] + a[2:] - b[:2] - b[2:]) / 2).square().sum(0) / hull.square().sum(0)
    if kind == "DIoU":
        return inter / union - apart
    angle = [torch.atan((t[2] - t[0]) / (t[3] - t[1])) for t in (a, b)]
    v = 4 / math.pi**2 * (angle[0] - angle[1]).square()
    alpha = (v / (1 - inter / union + v)).detach()
    return inter / union - apart - alpha * v


@pytest.mark.parametrize("kind", ["GIoU", "DIoU", "CIoU"])
def test_overlaps_and_their_gradients_agree_with_autograd(types: Types, kind: str) -> None:
    first, second = (RNG.uniform(4, 20, (4, 9)).astype(np.float32) for _ in range(2))
    grad = RNG.normal(size=9).astype(np.float32)
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (first, second))
    expected = score(kind, corners_of(a), corners_of(b))
    expected.backward(torch.tensor(grad, dtype=torch.float64))
    assert a.grad is not None
    assert b.grad is not None
    outs = [Out((1, 9))] * (2 if kind == "CIoU" else 1)
    forward = types(kind, [first, second], outs, trans=True, is_cross=False, mode="iou")
    np.testing.assert_allclose(forward[0][0], expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    extra = [forward[1]] if kind == "CIoU" else []
    backward = types(
        f"{kind}Grad",
        [grad, first, second, *extra],
        [Out((4, 9))] * 2,
        trans=True,
        is_cross=False,
        mode="iou",
    )
    np.testing.assert_allclose(backward[0], a.grad.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(backward[1], b.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_overlaps_of_all_pairs_have_a_row_for_each_second_box(types: Types) -> None:
    first, second = boxes(5).T.copy(), boxes(3).T.copy()
    (pairs,) = types("GIoU", [first, second], [Out((3, 5))], is_cross=True)
    for j in range(3):
        one = torch.tensor(second[:, j : j + 1]).expand(4, 5)
        np.testing.assert_allclose(pairs[j], score("GIoU", torch.tensor(first), one), atol=1e-5)


@pytest.mark.parametrize("mode", ["iou", "iof"])
def test_iou_widens_areas_by_eps(types: Types, mode: str) -> None:
    a = np.array([[0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]], np.float16)
    b = np.array([[0, 0, 10, 20], [10, 10, 20, 20]], np.float16)
    (given,) = types("Iou", [a, b], [Out((2, 3), "float16")], mode=mode, eps=0.01)
    shared, wide = np.array([[100, 0, 0], [0, 100, 0]]), [10.01 * 10.01, 10.01 * 20.01]
    whole = np.array([[wide[1]] * 3, [wide[0]] * 3])
    if mode == "iou":
        whole = whole + np.array([wide[0], wide[0], 6.01 * 10.01]) - shared
    np.testing.assert_allclose(given, shared / whole, rtol=1e-3)


def test_decoding_what_was_encoded_gives_the_boxes(types: Types) -> None:
    anchors, truth = boxes(7), boxes(7)
    norm = {"means": [0.1, -0.2, 0.3, 0.0], "stds": [0.1, 0.2, 0.3, 0.4]}
    (deltas,) = types("BoundingBoxEncode", [anchors, truth], [Out((7, 4))], **norm)
    size = anchors[:, 2:] - anchors[:, :2] + 1
    off = ((truth[:, :2] + truth[:, 2:]) - (anchors[:, :2] + anchors[:, 2:])) / 2 / size
    np.testing.assert_allclose(
        deltas[:, :2], (off - [0.1, -0.2]) / [0.1, 0.2], rtol=1e-4, atol=1e-4
    )
    (back,) = types(
        "BoundingBoxDecode",
        [anchors, deltas],
        [Out((7, 4))],
        max_shape=[200, 300],
        wh_ratio_clip=0.001,
        **norm,
    )
    np.testing.assert_allclose(back, truth, rtol=1e-4, atol=1e-3)
    (cut,) = types(
        "BoundingBoxDecode",
        [anchors, deltas],
        [Out((7, 4))],
        max_shape=[20, 30],
        wh_ratio_clip=0.001,
        **norm,
    )
    np.testing.assert_allclose(cut, np.clip(truth, 0, [29, 19, 29, 19]), rtol=1e-4, atol=1e-3)


def test_rotated_boxes_come_back_from_their_deltas(types: Types) -> None:
    anchors, truth = (
        np.concatenate([boxes(2, 6), RNG.uniform(-80, 80, (2, 6, 1)).astype(np.float32)], -1)
        .transpose(0, 2, 1)
        .copy()
        for _ in range(2)
    )
    weight = [1.0, 2.0, 3.0, 4.0, 5.0]
    (deltas,) = types("RotatedBoxEncode", [anchors, truth], [Out((2, 5, 6))], weight=weight)
    slope = np.tan(np.radians(truth[:, 4])) - np.tan(np.radians(anchors[:, 4]))
    np.testing.assert_allclose(deltas[:, 4], slope * 5, rtol=1e-4, atol=1e-4)
    (back,) = types("RotatedBoxDecode", [anchors, deltas], [Out((2, 5, 6))], weight=weight)
    np.testing.assert_allclose(back, truth, rtol=1e-4, atol=1e-3)


def test_cells_with_a_centre_respond_for_every_anchor(types: Types) -> None:
    truth = boxes(20)
    (flags,) = types(
        "AnchorResponseFlags",
        [truth],
        [Out((5 * 4 * 3,), "uint8")],
        featmap_size=[5, 4],
        strides=[16, 16],
        num_base_anchors=3,
    )
    cells = {(int(y // 16), int(x // 16)) for x, y in (truth[:, :2] + truth[:, 2:]) / 2}
    expected = [(y, x) in cells for y in range(5) for x in range(4) for _ in range(3)]
    np.testing.assert_array_equal(flags, np.array(expected, np.uint8))


def test_yolo_targets_are_bounded(types: Types) -> None:
    anchors, truth = boxes(6), boxes(6)
    (given,) = types(
        "YoloBoxesEncode",
        [anchors, truth, np.full(6, 32, np.int32)],
        [Out((6, 4))],
        performance_mode="high_precision",
    )
    off = ((truth[:, :2] + truth[:, 2:]) - (anchors[:, :2] + anchors[:, 2:])) / 64 + 0.5
    np.testing.assert_allclose(given[:, :2], off.clip(1e-6, 1 - 1e-6), rtol=1e-5)
    ratio = (truth[:, 2:] - truth[:, :2]) / (anchors[:, 2:] - anchors[:, :2])
    np.testing.assert_allclose(given[:, 2:], np.log(ratio), rtol=1e-4, atol=1e-5)


def shared_by_counting(a: Array, b: Array) -> float:
    """Area that two boxes (centre, size, degrees) share: points of a fine grid within both."""
    step = 0.05
    x, y = np.meshgrid(*[np.arange(-40, 40, step) + step / 2] * 2)
    inside = np.ones(x.shape, bool)
    for cx, cy, w, h, degrees in (a, b):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        inside &= np.abs((x - cx) * c + (y - cy) * s) <= w / 2
        inside &= np.abs((y - cy) * c - (x - cx) * s) <= h / 2
    return float(inside.sum()) * step * step


def rotated(n: int) -> Array:
    return np.stack(
        [
            RNG.uniform(-8, 8, n),
            RNG.uniform(-8, 8, n),
            RNG.uniform(6, 25, n),
            RNG.uniform(6, 25, n),
            RNG.uniform(-180, 180, n),
        ],
        1,
    ).astype(np.float32)


def test_rotated_boxes_share_the_area_that_counting_finds(types: Types) -> None:
    a, b = rotated(2), rotated(3)
    turned = [v.T[None].copy() for v in (a, b)]
    (area,) = types("RotatedOverlaps", turned, [Out((1, 2, 3))], trans=False)
    expected = np.array([[shared_by_counting(p, q) for q in b] for p in a])
    np.testing.assert_allclose(area[0], expected, rtol=0.01, atol=0.3)
    (iou,) = types("RotatedIou", turned, [Out((1, 2, 3))], trans=False, mode="iou", is_cross=True)
    sizes = [np.prod(v[:, 2:4], axis=1) for v in (a, b)]
    np.testing.assert_allclose(
        iou[0], area[0] / (sizes[0][:, None] + sizes[1] - area[0]), rtol=1e-5
    )


def test_rotated_suppression_tells_how_many_are_left(types: Types) -> None:
    a, scores = rotated(12), RNG.permutation(12).astype(np.float32) / 12
    turned = a.T[None].copy()
    (iou,) = types("RotatedIou", [turned, turned], [Out((1, 12, 12))], trans=False, is_cross=True)
    left: list[int] = []
    for i in np.argsort(-scores):
        if scores[i] > 0.1 and all(iou[0, i, j] <= 0.3 for j in left):
            left.append(int(i))
    kept, positions = types(
        "RotatedNMS",
        [a, scores, np.zeros((), np.int32)],
        [Out((12, 5)), Out((12,), "int32")],
        sized=True,
        iou_threshold=0.3,
        score_threshold=0.1,
        max_output_size=-1,
        mode=0,
    )
    assert positions.tolist() == left
    np.testing.assert_array_equal(kept, a[left])
    with pytest.raises(RuntimeError, match="aclopCompileAndExecuteV2"):
        types("RotatedNMS", [a, scores], [Out((12, 5)), Out((12,), "int32")], iou_threshold=0.3)


def suppressed(b: Array, scores: Array, overlap: float, least: float, most: int) -> list[int]:
    low = np.maximum(b[:, None, :2], b[None, :, :2])
    high = np.minimum(b[:, None, 2:], b[None, :, 2:])
    inter = np.clip(high - low, 0, None).prod(-1)
    area = (b[:, 2:] - b[:, :2]).prod(-1)
    near = inter / (area[:, None] + area - inter) > overlap
    alive, left = scores > least, []
    while alive.any() and len(left) < most:
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        left.append(best)
        alive &= ~near[best]
        alive[best] = False
    return left


def test_suppression_by_mask_keeps_all_rows(types: Types) -> None:
    b = boxes(25)
    rows = np.concatenate([b, np.linspace(1, 0.1, 25, dtype=np.float32)[:, None]], 1)
    kept, positions, mask = types("NMSWithMask", [rows], [Out((25, 5)), Out((25,), "int32"),
                                  Out((25,), "uint8")], iou_threshold=0.3)  # fmt: skip
    np.testing.assert_array_equal(kept, rows)
    assert positions.tolist() == list(range(25))
    wide = b + np.array([0, 0, 1, 1], np.float32)  # the last pixel belongs to a box
    left = suppressed(wide, rows[:, 4], 0.3, 0.0, 25)
    assert np.flatnonzero(mask).tolist() == left


def test_suppression_pads_with_zeros(types: Types) -> None:
    b, scores = boxes(30), RNG.permutation(30).astype(np.float32) / 30
    given, count = types(
        "NonMaxSuppressionV4",
        [b, scores, np.array(40, np.int32), np.array(0.2, np.float32), np.array(0.3, np.float32)],
        [Out((40,), "int32"), Out((1,), "int32")],
        pad_to_max_output_size=True,
    )
    left = suppressed(b, scores, 0.2, 0.3, 40)
    assert given.tolist() == left + [0] * (40 - len(left))
    assert count.tolist() == [len(left)]


def test_suppression_by_class_orders_all_classes_by_score(types: Types) -> None:
    b, scores = boxes(2, 15, 3), (RNG.permutation(90) / 90).reshape(2, 15, 3).astype(np.float32)
    kept, best, classes, count = types(
        "BatchMultiClassNonMaxSuppression",
        [b, scores],
        [Out((2, 9, 4)), Out((2, 9)), Out((2, 9)), Out((2,), "int32")],
        score_threshold=0.2,
        iou_threshold=0.25,
        max_size_per_class=4,
        max_total_size=9,
        change_coordinate_frame=False,
        transpose_box=False,
    )
    for i in range(2):
        rows = [
            (scores[i, j, k], k, j)
            for k in range(3)
            for j in suppressed(b[i, :, k], scores[i, :, k], 0.25, 0.2, 4)
        ]
        rows = sorted(rows, reverse=True)[:9]
        n = len(rows)
        assert count[i] == n
        np.testing.assert_array_equal(best[i], [r[0] for r in rows] + [0] * (9 - n))
        np.testing.assert_array_equal(classes[i, :n], [r[1] for r in rows])
        np.testing.assert_array_equal(kept[i, :n], [b[i, r[2], r[1]] for r in rows])


def test_choices_are_among_the_true_and_follow_the_seed(types: Types) -> None:
    mask = RNG.random((6, 7)) < 0.4
    count = int(mask.sum()) // 2
    outs = [Out((count, 2), "int32"), Out((count,), "bool")]
    first, filled = types("RandomChoiceWithMask", [mask], outs, count=count, seed=3, seed2=5)
    assert filled.all()
    assert len({tuple(row) for row in first.tolist()}) == count
    assert mask[first[:, 0], first[:, 1]].all()
    again, _ = types("RandomChoiceWithMask", [mask], outs, count=count, seed=3, seed2=5)
    other, _ = types("RandomChoiceWithMask", [mask], outs, count=count, seed=4, seed2=5)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    every, filled = types(
        "RandomChoiceWithMask",
        [mask],
        [Out((42, 2), "int32"), Out((42,), "bool")],
        count=42,
        seed=3,
    )
    assert filled.tolist() == [i < mask.sum() for i in range(42)]
    np.testing.assert_array_equal(every[filled], np.argwhere(mask))


def test_dropout_masks_keep_the_share_they_are_told(types: Types) -> None:
    shape = np.array([64, 64])
    (mask,) = types(
        "DropOutGenMaskV3",
        [shape, np.array(0.75, np.float16)],
        [Out((64, 64), "uint8")],
        seed=9,
        seed2=0,
    )
    assert set(np.unique(mask)) == {0, 1}
    assert abs(mask.mean() - 0.75) < 0.04
    x = RNG.normal(size=(64, 64)).astype(np.float32)
    (y,) = types("DropOutDoMaskV3", [x, mask, np.array(0.75, np.float32)], [Out((64, 64))])
    np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), rtol=1e-6)


def test_dropout_bits_keep_the_share_they_are_told(types: Types) -> None:
    count, share = np.array([64 * 63]), np.array(0.75, np.float16)

    def drawn(seed: int, offset: int) -> np.ndarray:
        numbers = np.array(seed, np.int32), np.array(0, np.int32), np.array([0, offset])
        (bits,) = types("StatelessDropOutGenMask", [count, share, *numbers], [Out((512,), "uint8")])
        return np.unpackbits(bits, bitorder="little")[: count[0]]

    first = drawn(9, 0)
    assert abs(first.mean() - 0.75) < 0.04
    np.testing.assert_array_equal(first, drawn(9, 0))
    for other in (drawn(10, 0), drawn(9, 1 << 20)):
        assert (first != other).any()


def test_calibration_finds_the_least_loss(types: Types) -> None:
    data = RNG.uniform(-1, 1, (6, 7)).astype(np.float32)
    sums = np.cumsum(np.histogram(data, 128)[0]).astype(np.int32)
    ends = [np.array([v], np.float32) for v in (data.min(), data.max())]
    scale, offset = types(
        "IFMR",
        [data, *ends, sums],
        [Out((1,)), Out((1,))],
        with_offset=False,
        min_percentile=0.999999,
        max_percentile=0.999999,
        search_range=[0.7, 1.3],
        search_step=0.01,
    )

    def loss(unit: float) -> float:
        return float(np.square(np.clip(np.round(data / unit), -128, 127) * unit - data).sum())

    top = max(abs((sums < 42 * 0.999999).sum() / 128 * np.ptp(data) + data.min()), abs(data.min()))
    assert offset == 0
    assert loss(float(scale[0])) <= min(loss(top * k / 12700) for k in range(70, 130)) * 1.001


def test_regions_end_where_the_mode_says(types: Types) -> None:
    image = RNG.normal(size=(1, 2, 8, 8)).astype(np.float32)
    rois = np.array([[0, 2, 2, 14, 14]], np.float32)
    how = {"spatial_scale": 0.5, "pooled_height": 3, "pooled_width": 3, "sample_num": 2}
    pooled = {
        m: types("ROIAlign", [image, rois], [Out((1, 2, 3, 3))], roi_end_mode=m, **how)[0]
        for m in (0, 1, 2, 3)
    }
    np.testing.assert_array_equal(pooled[3], pooled[2])
    later = rois + np.array([0, 0, 0, 1, 1], np.float32)
    (as_zero,) = types("ROIAlign", [image, later], [Out((1, 2, 3, 3))], roi_end_mode=0, **how)
    np.testing.assert_allclose(pooled[1], as_zero, rtol=1e-6)
    lower = rois - np.array([0, 1, 1, 1, 1], np.float32)  # half a pixel, at this scale
    (as_zero,) = types("ROIAlign", [image, lower], [Out((1, 2, 3, 3))], roi_end_mode=0, **how)
    np.testing.assert_allclose(pooled[2], as_zero, rtol=1e-5, atol=1e-6)
    ones = np.ones((1, 2, 3, 3), np.float32)
    (grad,) = types(
        "ROIAlignGrad",
        [ones, rois],
        [Out(image.shape)],
        xdiff_shape=image.shape,
        roi_end_mode=0,
        **how,
    )
    np.testing.assert_allclose((grad * image).sum(), pooled[0].sum(), rtol=1e-4)


def test_position_sensitive_bins_average_their_own_channel(types: Types) -> None:
    image = RNG.normal(size=(1, 8, 9, 9)).astype(np.float32)
    rois = np.array([0, 0, 0, 7, 7], np.float32).reshape(1, 5, 1)
    how = {"spatial_scale": 1.0, "output_dim": 2, "group_size": 2}
    (given,) = types("PSROIPoolingV2", [image, rois], [Out((1, 2, 2, 2))], **how)
    for o in range(2):
        for i in range(2):
            for j in range(2):
                plane = image[0, (o * 2 + i) * 2 + j, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
                np.testing.assert_allclose(given[0, o, i, j], plane.mean(), rtol=1e-4, atol=1e-6)
    (grad,) = types(
        "PSROIPoolingGradV2D", [given, rois], [Out(image.shape)], input_size=[9, 9], **how
    )
    np.testing.assert_allclose((grad * image).sum(), np.square(given).sum(), rtol=1e-4)


def test_shapes_that_do_not_fit_are_named(types: Types) -> None:
    with pytest.raises(RuntimeError, match=r"input 1 has the shape \[3\], expected \[n,4\]"):
        types("Iou", [boxes(2), np.zeros(3, np.float32)], [Out((3, 2))])


@pytest.mark.parametrize("every", [True, False])
def test_boxes_take_the_truths_that_their_cells_answer_for(types: Types, every: bool) -> None:
    assigned = np.array([-1, -1, 0, -1, 0], np.float32)
    overlaps = np.array([[0.1, 0.7, 0.7, 0.2, 0.0], [0.6, 0.3, 0.1, 0.3, 0.6]], np.float32)
    responsible = np.array([1, 1, 1, 0, 0], np.uint8)
    best, truth = overlaps.max(0), overlaps.argmax(0).astype(np.int32)
    of_truth, place = overlaps.max(1), overlaps.argmax(1).astype(np.int32)
    inputs = [assigned, overlaps, responsible, best, truth, of_truth, place, np.array(9, np.int32)]
    options = {"pos_iou_thr": 0.65, "min_pos_iou": 0.2, "gt_max_assign_all": every}
    [got] = types("GridAssignPositive", inputs, [Out((5,))], **options)
    # Boxes 1 and 2 pass the threshold for truth 1; box 0 is the best of truth 2.
    np.testing.assert_array_equal(got, [2, 1, 1, -1, 0])
    options["pos_iou_thr"] = 0.9  # then the best of each truth alone: two boxes tie for truth 1
    [got] = types("GridAssignPositive", inputs, [Out((5,))], **options)
    np.testing.assert_array_equal(got, [2, 1, 1 if every else 0, -1, 0])
