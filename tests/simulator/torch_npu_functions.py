"""Prints what torch_npu's functions give: run with torch_npu, and with mindtorch standing in."""

import torch
import torch_npu


def draw(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype).npu()


def rounded(value):
    """Shape, dtype and a few digits of a sum that weighs every element."""
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.detach().cpu().double().flatten()
    weights = torch.arange(1, flat.numel() + 1, dtype=torch.float64) / max(flat.numel(), 1)
    return tuple(value.shape), str(value.dtype), f"{float((flat * weights).sum()):.2f}"


def show(name, *arguments, to=(), **settings):
    """A call's results, and the gradients of `to`."""
    for tensor in to:
        tensor.requires_grad_()
    results = getattr(torch_npu, name)(*arguments, **settings)
    listed = results if isinstance(results, tuple | list) else (results,)
    print(name, *(rounded(r) for r in listed))
    if to:
        loss = sum((r.float() ** 2).sum() for r in listed if getattr(r, "requires_grad", False))
        loss.backward()
        print("   gradients", *(rounded(t.grad) for t in to))


HALF = torch.float16
torch.manual_seed(0)
x, y, gamma, beta = draw(4, 8), draw(4, 8), draw(8), draw(8)
show("npu_rms_norm", x, gamma, epsilon=1e-5)
show("npu_gemma_rms_norm", x, gamma)
show("npu_add_rms_norm", x, y, gamma, 1e-5)
show("npu_deep_norm", x, y, beta, gamma)
show("npu_group_norm_silu", draw(2, 4, 3, 3), draw(4), draw(4), 2)
show("npu_swiglu", draw(4, 8), to=[])
show("npu_geglu", draw(4, 8))
show("fast_gelu", draw(4, 8))
show("npu_fast_gelu", draw(4, 8))
show("npu_gelu", x, approximate="tanh")
show("npu_silu", x)
show("npu_mish", x)
moments = [torch.ones(4).npu(), torch.zeros(4).npu(), torch.zeros(4).npu()]
show("npu_apply_adam_w", 0.9, 0.999, 0.1, 0.01, 0.9, 0.999, 1e-8, x[0, :4], None, False, True,
     out=moments)  # fmt: skip
show("npu_dtype_cast", x, HALF)
show("npu_transpose", draw(2, 3, 4), (1, 0, 2))
show("npu_confusion_transpose", draw(2, 3, 4), (1, 0, 2), (3, 8), True)
show("npu_confusion_transpose", draw(2, 12), (1, 0), (4, 6), False)
show("npu_one_hot", torch.tensor([1, 2]).npu(), depth=4)
show("npu_max", x, 1)
show("npu_min", x, 0, keepdim=True)
show("npu_slice", x, [1, 2], [2, 3])
show("npu_pad", x, [1, 1, 2, 0])
show("npu_broadcast", draw(3, 1), [3, 4])
show("npu_reshape", x, [2, 16])
show("npu_bmmV2", draw(2, 3, 4), draw(2, 4, 5), [])
show("npu_moe_gating_top_k_softmax", x, None, k=2)
experts = torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3]]).npu()
permuted, places = torch_npu.npu_moe_token_permute(draw(4, 8, dtype=torch.bfloat16), experts)
print("npu_moe_token_permute", rounded(permuted), places.tolist())
show("npu_moe_token_unpermute", permuted, places, draw(4, 2, dtype=torch.bfloat16))
show("npu_moe_token_unpermute", permuted, places)
rows = torch.arange(8, dtype=torch.int32).view(2, 4).t().contiguous().npu()
show("npu_moe_init_routing", x, rows, experts.int(), 4)
show("npu_moe_compute_expert_tokens", torch.tensor([0, 0, 1, 2]).int().npu(), 4)
groups = torch.tensor([1, 4]).npu()
show("npu_grouped_matmul", [draw(4, 8, dtype=HALF)], [draw(2, 8, 3, dtype=HALF)],
     group_list=groups, split_item=2, group_type=0)  # fmt: skip
show("npu_dynamic_quant", draw(4, 8, dtype=HALF))
show("npu_quantize", x, torch.full((1,), 20.0).npu(), torch.zeros(1).npu(), torch.qint8, -1, False)
whole = torch.arange(4 * 32).view(4, 32).remainder(7).to(torch.int8).npu()
table = torch.arange(32 * 16).view(32, 16).remainder(5).to(torch.int8).npu()
show("npu_quant_matmul", whole, table, torch.ones(1).npu(), output_dtype=HALF)
show("npu_weight_quant_batchmatmul", draw(4, 32, dtype=HALF), table, draw(16, dtype=HALF))
show("npu_trans_quant_param", torch.ones(3).npu())
show("npu_anti_quant", whole, torch.full((32,), 0.5).npu(), dst_dtype=HALF)
heads = [draw(1, 2, 32, 64, dtype=HALF) for _ in range(3)]
apart = {"num_heads": 2, "input_layout": "BNSD"}
show("npu_prompt_flash_attention", *heads, scale_value=0.125, **apart)
show("npu_incre_flash_attention", heads[0][:, :, :1].contiguous(), *heads[1:], scale_value=0.125,
     **apart)  # fmt: skip
print(rounded(torch_npu.npu_fused_infer_attention_score(*heads, scale=0.125, **apart)[0]))
print(rounded(torch_npu.npu_fusion_attention(*heads, 2, "BNSD", scale=0.125)[0]))
show("npu_scatter_nd_update", x, torch.tensor([[0], [2]]).npu(), torch.ones(2, 8).npu())
show("npu_cross_entropy_loss", x, torch.tensor([0, 1, 2, 3]).npu())
show("npu_ffn", draw(4, 8, dtype=HALF), draw(8, 16, dtype=HALF), draw(16, 8, dtype=HALF), "gelu")
angles = [draw(1, 3, 1, 64, dtype=HALF) for _ in range(2)]
show("npu_rotary_mul", draw(2, 3, 4, 64, dtype=HALF), *angles)
show("npu_rms_norm", draw(4, 8), gamma.clone(), to=[])
a, g = draw(4, 8), draw(8)
show("npu_rms_norm", a, g, to=[a, g])
a = draw(4, 8)
show("npu_swiglu", a, to=[a])
a = draw(4, 8)
show("npu_geglu", a, to=[a])
a = draw(4, 8)
show("npu_fast_gelu", a, to=[a])
a = draw(2, 3, 4, 64)
angles = [draw(1, 3, 1, 64) for _ in range(2)]
show("npu_rotary_mul", a, *angles, to=[a])
chosen = torch_npu.npu_moe_gating_top_k(
    draw(4, 256), 8, bias=draw(256), k_group=4, group_count=8, group_select_mode=1, norm_type=1,
    routed_scaling_factor=2.5,
)  # fmt: skip
print(*(rounded(r) for r in chosen[:2]))
routing = torch_npu.npu_moe_init_routing_v2(
    draw(4, 8, dtype=HALF), experts.int(), active_num=8, expert_capacity=0, expert_num=4,
    expert_tokens_num_type=1, expert_tokens_num_flag=True, active_expert_range=[0, 4],
)  # fmt: skip
print(*(rounded(r) for r in routing[:3]))
show("npu_dequant_swiglu_quant", draw(4, 64, dtype=HALF), activate_left=True, quant_mode=1)
rows = [draw(4, 64, dtype=HALF) for _ in range(2)]
quantised = torch_npu.npu_add_rms_norm_quant(
    *rows, draw(64, dtype=HALF), torch.full((64,), 0.1).half().npu(), None
)
print(rounded(quantised[0]), rounded(quantised[2]))
show("npu_add_rms_norm_cast", *rows, draw(64, dtype=HALF))
show("npu_rms_norm_quant", rows[0], draw(64, dtype=HALF), draw(64, dtype=HALF),
     torch.full((1,), 20.0).half().npu(), torch.zeros(1).to(torch.int8).npu())  # fmt: skip
limited = torch_npu.npu_top_k_top_p(
    draw(4, 64), torch.full((4,), 0.9).npu(), torch.full((4,), 9).int().npu()
)
print(limited.isfinite().sum().item(), rounded(limited.masked_fill(limited.isinf(), 0)))
show("npu_group_norm_swish", draw(2, 4, 3, 3), 2, draw(4), draw(4))
show("npu_attention_update", [draw(8), draw(8)], [draw(8, 16), draw(8, 16)], 0)
show("npu_apply_rotary_pos_emb", *[draw(2, 3, 4, 128, dtype=HALF) for _ in range(2)],
     *[draw(2, 3, 1, 128, dtype=HALF) for _ in range(2)])  # fmt: skip
show("npu_quant_matmul", whole, table, torch.ones(16).npu(), pertoken_scale=torch.ones(4).npu(),
     output_dtype=HALF)  # fmt: skip
show("npu_sort_v2", x, -1, True)
show("npu_layer_norm_eval", x, [8], gamma, beta, 1e-5)
show("npu_transpose_batchmatmul", draw(2, 4, 8, dtype=HALF), draw(2, 8, 16, dtype=HALF))
show("npu_prefetch", x, x, 64)
show("npu_moe_finalize_routing", draw(8, 16), draw(4, 16), None, None, draw(4, 2),
     torch.arange(8).int().npu(), experts.int())  # fmt: skip
show("npu_grouped_matmul", [draw(4, 8, dtype=HALF)], [draw(2, 8, 16, dtype=HALF)],
     bias=[draw(2, 16, dtype=HALF)], group_list=groups, split_item=3, group_type=0)  # fmt: skip
show("npu_grouped_matmul", [draw(4, 8, dtype=HALF), draw(2, 8, dtype=HALF)],
     [draw(8, 16, dtype=HALF), draw(8, 4, dtype=HALF)], group_type=-1, split_item=0)  # fmt: skip
lengths = {"block_size": 16, "actual_seq_lengths_kv": [20, 31], "num_key_value_heads": 2}
blocks = torch.tensor([[0, 1], [2, 3]]).int().npu()
pages = [draw(4, 16, 128, dtype=HALF) for _ in range(2)]
print(rounded(torch_npu.npu_fused_infer_attention_score(
    draw(2, 1, 128, dtype=HALF), *pages, num_heads=2, input_layout="BSH", scale=0.125,
    block_table=blocks, **lengths)[0]))  # fmt: skip
print(torch_npu.get_npu_format(x), torch_npu.get_npu_format(draw(2, 3, 4, 5)))
print(rounded(torch_npu.npu_format_cast(draw(16, 16), 2)), torch_npu.Format.FRACTAL_NZ)
print(sorted(torch_npu.profiler.ExportType.Text), torch.npu.is_jit_compile_false())
for wrong in ({"X": "Y"}, 3):
    try:
        torch.npu.set_option(wrong)
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
layer = torch.nn.Linear(4, 2).npu()
for name in ("NpuFusedAdam", "NpuFusedAdamW", "NpuFusedSGD", "NpuFusedRMSprop", "NpuFusedAdadelta"):
    torch.manual_seed(1)
    layer = torch.nn.Linear(4, 2).npu()
    optimizer = getattr(torch_npu.optim, name)(layer.parameters(), lr=0.1)
    for _ in range(3):
        layer(torch.ones(2, 4).npu()).pow(2).sum().backward()
        optimizer.step()
    print(name, rounded(layer.weight))
pinned = torch.ones(2, 3).T.pin_memory()
print(pinned.stride(), pinned[0].is_pinned(), pinned.pin_memory() is pinned)
print(pinned.clone().is_pinned(), pinned.untyped_storage().is_pinned(), pinned.npu().is_pinned())
loader = torch.utils.data.DataLoader([(torch.ones(2), 1)] * 4, batch_size=2, pin_memory=True)
batch = next(iter(loader))
print(type(batch), [part.is_pinned() for part in batch])
for layer, data in (
    (torch.nn.Linear(3, 2).npu(), torch.ones(4, 3)),
    (torch.nn.Linear(3, 2), torch.ones(4, 3).npu()),
    (torch.nn.Linear(3, 2, bias=False).npu(), torch.ones(2, 4, 3)),
    (torch.nn.BatchNorm1d(3).npu(), torch.ones(2, 3)),
    (torch.nn.Conv2d(3, 2, 1).npu(), torch.ones(1, 3, 4, 4)),
    (torch.nn.Embedding(3, 2).npu(), torch.tensor([1])),
    (torch.nn.LayerNorm(3).npu(), torch.ones(2, 3)),
):
    try:
        layer(data)
    except RuntimeError as error:
        print(str(error).splitlines()[0])
