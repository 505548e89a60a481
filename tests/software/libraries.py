"""Runs one library's program on whatever `import torch` gives; numbers as JSON.

Arguments: LIBRARY DEVICE FILE.

With the stand-in's folder on PYTHONPATH that is mindtorch, else torch. Weights and inputs are
made from sines, so that both compute the same.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import beside
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


def waves(*shape, phase=0.0):
    """Numbers in [-1, 1] that every library makes alike."""
    count = 1
    for n in shape:
        count *= n
    return torch.sin(torch.arange(count, dtype=torch.float64) * 0.37 + phase).float().reshape(shape)


def filled(model):
    """The model with its matrices made of waves; norms and biases keep their start."""
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            if p.dim() > 1:
                p.copy_(waves(*p.shape, phase=i) / p[0].numel() ** 0.5)
            elif p.dim() == 1:
                p.copy_(p + 0.01 * waves(*p.shape, phase=i))
    return model


def numbers(x):
    return x.detach().cpu().double().flatten().tolist()


def trained(model, inputs, loss_of, device, steps=3):
    """Losses of a few steps and the last output."""
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(*inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def lightning(device):
    import lightning

    class Layer(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def training_step(self, batch, index):
            x, y = batch
            loss = nn.functional.cross_entropy(self.layer(x), y)
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            x, y = batch
            self.log("accuracy", (self.layer(x).argmax(-1) == y).float().mean())

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.1)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    data = TensorDataset(waves(16, 4), torch.arange(16) % 2)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=3, logger=False, enable_progress_bar=False, default_root_dir=folder,
            accelerator="cpu", enable_model_summary=False, gradient_clip_val=0.5,
            accumulate_grad_batches=2,
        )  # fmt: skip
        model = filled(Layer())
        trainer.fit(model, DataLoader(data, batch_size=4), DataLoader(data, batch_size=8))
        path = Path(folder) / "again.ckpt"
        trainer.save_checkpoint(path)
        again = Layer.load_from_checkpoint(path)
    return {
        "metrics": [float(trainer.callback_metrics[k]) for k in ("loss", "accuracy")],
        "weight": numbers(model.layer.weight),
        "loaded": numbers(again.layer.weight),
    }


def accelerate(device):
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = filled(nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    data = DataLoader(TensorDataset(waves(20, 6), torch.arange(20) % 3), batch_size=4)
    model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
    losses = []
    for _ in range(2):
        for x, y in data:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach().reshape(1))[0].item())
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = numbers(model[0].weight)
        with torch.no_grad():
            model[0].weight.zero_()
        accelerator.load_state(folder)
        after = numbers(model[0].weight)
    return {"losses": losses, "before": before, "after": after}


def peft(device):
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)
            self.table = nn.Embedding(10, 8)

        def forward(self, x):
            return self.second(torch.relu(self.first(self.table(x))))

    results = {}
    for kind in ({}, {"use_rslora": True}, {"use_dora": True}):
        config = LoraConfig(r=4, lora_alpha=8, target_modules=["first", "table"], **kind)
        if "use_dora" in kind:
            config = LoraConfig(r=4, lora_alpha=8, target_modules=["first"], **kind)
        model = get_peft_model(filled(Net()), config)
        with torch.no_grad():
            for i, (name, p) in enumerate(model.named_parameters()):
                if "lora_" in name and p.dim() > 1:
                    p.copy_(0.1 * waves(*p.shape, phase=i))
        x = (torch.arange(12) % 10).reshape(3, 4).to(device)
        key = next(iter(kind), "lora")
        results[key] = trained(model, (x,), lambda y: (y**2).mean(), device)
        count, total = model.get_nb_trainable_parameters()
        results[key + " sizes"] = [count, total, len(get_peft_model_state_dict(model))]
        with torch.no_grad():
            results[key + " merged"] = numbers(model.eval().merge_and_unload()(x))
    return results


def safetensors(device):
    from safetensors import safe_open
    from safetensors.torch import load, load_file, load_model, save, save_file, save_model

    kinds = {
        "float": waves(3, 4), "half": waves(5).half(), "bf16": waves(2, 2, 2).bfloat16(),
        "int8": torch.arange(7, dtype=torch.int8), "int64": torch.tensor(-5),
        "bool": waves(6) > 0, "complex": torch.complex(waves(3), waves(3, phase=1)),
        "empty": torch.zeros(0, 3), "float8": waves(4).to(torch.float8_e4m3fn),
    }  # fmt: skip
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tensors.safetensors")
        save_file({k: v.to(device).contiguous() for k, v in kinds.items()}, path, {"note": "x"})
        for name, x in load_file(path, device=device).items():
            assert (x.dtype, x.shape) == (kinds[name].dtype, kinds[name].shape), name
            x = x.cpu()
            results[name] = numbers(torch.view_as_real(x) if x.is_complex() else x.float())
        with safe_open(path, framework="pt", device=device) as file:
            assert file.metadata() == {"note": "x"}
            results["slice"] = numbers(file.get_slice("float")[1:, ::1][:, 1:3])
        model = filled(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
        model[1].weight = model[0].weight
        save_model(model, path)
        other = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        other[1].weight = other[0].weight
        load_model(other, path)
        results["model"] = numbers(other[1].weight)
    results["bytes"] = numbers(load(save({"x": waves(9)}))["x"])
    return results


def datasets(device):
    import numpy as np
    from datasets import Dataset

    rows = {"x": np.sin(np.arange(24.0)).reshape(12, 2).tolist(), "y": list(range(12))}
    table = Dataset.from_dict(rows).with_format("torch")
    table = table.map(lambda row: {"z": row["x"].sum()}).filter(lambda row: int(row["y"]) % 2 == 0)
    results = {"z": numbers(table[:]["z"])}
    for workers in (0, 2):
        batches = list(DataLoader(table, batch_size=4, num_workers=workers))
        results[f"x{workers}"] = numbers(torch.cat([b["x"].to(device) for b in batches]))
        results[f"y{workers}"] = [int(n) for b in batches for n in b["y"]]
    return results


def torchmetrics(device):
    from torchmetrics import MetricCollection, classification as c, functional as f, regression as r

    scores = waves(40, 5).softmax(-1).to(device)
    labels = (torch.arange(40) * 7 % 5).to(device)
    collection = MetricCollection({
        "accuracy": c.MulticlassAccuracy(5), "f1": c.MulticlassF1Score(5, average="macro"),
        "confusion": c.MulticlassConfusionMatrix(5), "auroc": c.MulticlassAUROC(5),
        "calibration": c.MulticlassCalibrationError(5), "kappa": c.MulticlassCohenKappa(5),
        "average precision": c.MulticlassAveragePrecision(5),
    }).to(device)  # fmt: skip
    for a, b in zip(scores.chunk(4), labels.chunk(4), strict=True):
        collection.update(a, b)
    results = {k: numbers(v) for k, v in collection.compute().items()}
    a, b = waves(30).to(device), waves(30, phase=0.2).to(device)
    kinds = (r.MeanSquaredError, r.R2Score, r.PearsonCorrCoef, r.SpearmanCorrCoef,
             r.KendallRankCorrCoef, r.ExplainedVariance, r.MeanAbsoluteError)  # fmt: skip
    for kind in kinds:
        metric = kind().to(device)
        metric.update(a, b)
        results[kind.__name__] = numbers(metric.compute())
    images = waves(2, 3, 32, 32).to(device), waves(2, 3, 32, 32, phase=0.1).to(device)
    results["ssim"] = numbers(f.structural_similarity_index_measure(*images))
    results["psnr"] = numbers(f.peak_signal_noise_ratio(*images))
    results["perplexity"] = numbers(f.text.perplexity(scores[None], labels[None]))
    return results


def einops(device):
    from einops import einsum, pack, rearrange, reduce, repeat, unpack
    from einops.layers.torch import EinMix, Rearrange, Reduce

    x = waves(2, 6, 8, 3).to(device).requires_grad_()
    results = {
        "patches": numbers(rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=4)),
        "max": numbers(reduce(x, "b (h 2) (w 2) c -> b h w c", "max")),
        "repeat": numbers(repeat(x, "b h w c -> b (h 2) w c r", r=2)),
        "einsum": numbers(einsum(x, x, "b h w c, b h v c -> b w v")),
    }
    packed, shapes = pack([x, x[:, 0]], "b * c")
    results["packed"] = numbers(packed) + [float(n) for s in shapes for n in s]
    results["unpacked"] = numbers(unpack(packed, shapes, "b * c")[1])
    model = filled(nn.Sequential(
        Rearrange("b h w c -> b c h w"), nn.Conv2d(3, 4, 3), Reduce("b c h w -> b c", "mean"),
        EinMix("b c -> b d", weight_shape="c d", bias_shape="d", c=4, d=2),
    ))  # fmt: skip
    results["losses"] = trained(model, (x,), lambda y: (y**2).mean(), device)
    results["gradient"] = numbers(x.grad)
    return results


def opt_einsum(device):
    import opt_einsum

    a, b, c = waves(3, 4).to(device), waves(4, 5, 6).to(device), waves(6, 3, 5).to(device)
    path = opt_einsum.contract_path("ij,jkl,lik->k", a, b, c)[0]
    expression = opt_einsum.contract_expression("ij,jkl,lik->k", a.shape, b.shape, c.shape)
    return {
        "contract": numbers(opt_einsum.contract("ij,jkl,lik->k", a, b, c)),
        "outer": numbers(opt_einsum.contract("ij,kl->ijkl", a, a)),
        "expression": numbers(expression(a, b, c)),
        "path": [float(i) for step in path for i in step],
        "own": numbers(torch.einsum("ij,jkl,lik->k", a, b, c)),
    }


def x_transformers(device):
    import x_transformers as x

    results = {}
    kinds = {
        "plain": {}, "rotary": {"rotary_pos_emb": True}, "glu": {"ff_glu": True, "ff_swish": True},
        "alibi": {"alibi_pos_bias": True}, "norm": {"use_rmsnorm": True, "attn_qk_norm": True},
        "relative": {"rel_pos_bias": True}, "keys": {"attn_kv_heads": 2},
    }  # fmt: skip
    for name, options in kinds.items():
        model = filled(x.TransformerWrapper(
            num_tokens=20, max_seq_len=16,
            attn_layers=x.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options),
        ))  # fmt: skip
        model = x.AutoregressiveWrapper(model)
        tokens = (torch.arange(24) * 7 % 20).reshape(2, 12).to(device)
        results[name] = trained(model, (tokens,), lambda loss: loss, device)
        model.eval()
        results[name + " greedy"] = numbers(model.generate(tokens[:, :4], 6, temperature=0.0))
    return results


def diffusers(device):
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        DDPMScheduler,
        DPMSolverMultistepScheduler,
        EulerDiscreteScheduler,
        FlowMatchEulerDiscreteScheduler,
        UNet2DConditionModel,
        UNet2DModel,
    )  # fmt: skip

    results = {}
    unet = filled(UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=4,
        block_out_channels=(8, 16), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    ))  # fmt: skip
    x = waves(2, 3, 8, 8).to(device)
    steps = torch.tensor([10, 500], device=device)
    results["unet"] = trained(unet, (x, steps), lambda y: (y.sample**2).mean(), device)
    text = filled(UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, norm_num_groups=4,
        block_out_channels=(8, 16), cross_attention_dim=12, attention_head_dim=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )).to(device).eval()  # fmt: skip
    vae = filled(AutoencoderKL(
        in_channels=3, out_channels=3, block_out_channels=(8,), layers_per_block=1,
        latent_channels=4, norm_num_groups=4, sample_size=8,
    ))  # fmt: skip
    vae_loss = lambda y: ((y.sample - x) ** 2).mean()  # noqa: E731
    results["vae"] = trained(vae, (x,), vae_loss, device, steps=2)
    words = waves(1, 5, 12).to(device)
    for kind in (DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler,
                 FlowMatchEulerDiscreteScheduler):  # fmt: skip
        scheduler = kind()
        scheduler.set_timesteps(4, device=device)
        latent = waves(1, 4, 8, 8).to(device)
        draws = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for t in scheduler.timesteps:
                given = latent
                if hasattr(scheduler, "scale_model_input"):
                    given = scheduler.scale_model_input(latent, t)
                noise = text(given, t, words).sample
                options = {} if kind is DPMSolverMultistepScheduler else {"generator": draws}
                latent = scheduler.step(noise, t, latent, **options).prev_sample
            results[kind.__name__] = numbers(vae.eval().decode(latent).sample)
    return results


def trainer(device):
    """transformers' Trainer over a small Llama: losses, evaluation, a checkpoint resumed."""
    import transformers as t

    config = t.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=50, max_position_embeddings=32,
    )  # fmt: skip
    data = [{"input_ids": (torch.arange(10) * (3 + i)) % 50} for i in range(16)]
    for row in data:
        row["labels"] = row["input_ids"]
    results = {}
    with tempfile.TemporaryDirectory() as folder:

        def made(steps):
            return t.Trainer(
                filled(t.LlamaForCausalLM(config)),
                t.TrainingArguments(
                    folder, max_steps=steps, per_device_train_batch_size=4, logging_steps=1,
                    save_steps=2, report_to=[], use_cpu=True, learning_rate=1e-2, seed=5,
                    disable_tqdm=True, lr_scheduler_type="cosine", warmup_steps=1,
                    gradient_accumulation_steps=1, max_grad_norm=1.0,
                ),
                train_dataset=data, eval_dataset=data[:4],
            )  # fmt: skip

        first = made(4)
        first.train()
        results["losses"] = [r["loss"] for r in first.state.log_history if "loss" in r]
        results["norms"] = [r["grad_norm"] for r in first.state.log_history if "grad_norm" in r]
        results["evaluated"] = [first.evaluate()["eval_loss"]]
        again = made(6)
        again.train(resume_from_checkpoint=str(Path(folder) / "checkpoint-2"))
        results["resumed"] = [r["loss"] for r in again.state.log_history if "loss" in r]
    return results


PROGRAMS = (
    lightning, accelerate, peft, safetensors, datasets, torchmetrics, einops, opt_einsum,
    x_transformers, diffusers, trainer,
)  # fmt: skip

if __name__ == "__main__":
    sys.modules["libraries"] = sys.modules["__main__"]
    import library_programs

    name, device, path = sys.argv[1:]
    programs = {program.__name__: program for program in (*PROGRAMS, *library_programs.PROGRAMS)}
    beside.declare()
    torch.manual_seed(0)
    if device == "npu":
        torch.npu.set_device(0)
    Path(path).write_text(json.dumps(programs[name](device)))
