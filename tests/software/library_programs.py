"""Programs of more libraries, for libraries.py: what each gives, by stage, as numbers."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader


def waves(*shape, phase=0.0):
    from libraries import waves

    return waves(*shape, phase=phase)


def filled(model):
    from libraries import filled

    return filled(model)


def numbers(x):
    from libraries import numbers

    if isinstance(x, (list, tuple)):
        return [n for y in x for n in numbers(y)]
    return numbers(torch.view_as_real(x) if x.is_complex() else x)


def trained(*args, **words):
    from libraries import trained

    return trained(*args, **words)


def slopes(model, *inputs):
    """The output of a model that is evaluated, and how large its gradients are."""
    output = model.eval()(*inputs)
    output.float().square().mean().backward()
    total = sum(p.grad.float().abs().sum() for p in model.parameters() if p.grad is not None)
    return numbers(output)[:200] + numbers(total)


def timm(device):
    import timm
    from safetensors.torch import load_model, save_model
    from timm.loss import LabelSmoothingCrossEntropy
    from timm.optim import create_optimizer_v2

    results = {}
    kinds = {
        "resnet18": {}, "efficientnet_b0": {}, "convnext_atto": {}, "mobilenetv3_small_100": {},
        "regnetx_002": {}, "edgenext_xx_small": {}, "vit_tiny_patch16_224": {"img_size": 64},
        "swin_tiny_patch4_window7_224": {"img_size": 56},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, options in kinds.items():
            model = filled(timm.create_model(name, num_classes=5, **options)).to(device)
            x = waves(2, 3, *[options.get("img_size", 64)] * 2).to(device)
            results[name] = slopes(model, x)
            path = str(Path(folder) / name)
            save_model(model.cpu(), path)
            again = timm.create_model(name, num_classes=5, **options)
            load_model(again, path)
            results[name + " loaded"] = numbers(again.to(device).eval()(x))
    for name in ("adamw", "lamb", "lion", "adafactor", "nadamw"):
        model = filled(nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3))).to(device)
        optimizer = create_optimizer_v2(model, opt=name, lr=1e-2, weight_decay=1e-2)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = LabelSmoothingCrossEntropy()(
                model(waves(6, 8).to(device)), torch.arange(6).to(device) % 3
            )
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results[name] = losses
    features = filled(timm.create_model("resnet18", features_only=True)).to(device).eval()
    results["features"] = numbers(features(waves(1, 3, 32, 32).to(device)))[::7]
    return results


def torchvision(device):
    import torchvision as tv
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names
    from torchvision.transforms import functional as f

    results = {}
    kinds = {
        "resnet18": {}, "mobilenet_v2": {}, "densenet121": {}, "shufflenet_v2_x0_5": {},
        "regnet_y_400mf": {}, "convnext_tiny": {}, "swin_t": {}, "vit_b_32": {"image_size": 64},
    }  # fmt: skip
    for name, options in kinds.items():
        model = filled(getattr(tv.models, name)(num_classes=5, **options)).to(device)
        results[name] = slopes(model, waves(1, 3, 64, 64).to(device))
    model = filled(tv.models.resnet18(num_classes=5)).eval()
    results["nodes"] = [float(len(names)) for names in get_graph_node_names(model)]
    taken = create_feature_extractor(model, {"layer1.0.relu": "a", "avgpool": "b"}).to(device)
    output = taken(waves(1, 3, 32, 32).to(device))
    results["extracted"] = numbers(output["b"]) + numbers(output["a"])[:100]
    pyramid = filled(tv.ops.FeaturePyramidNetwork([4, 8], 6)).to(device)
    maps = {"a": waves(1, 4, 8, 8).to(device), "b": waves(1, 8, 4, 4).to(device)}
    results["pyramid"] = numbers(list(pyramid(maps).values()))
    boxes = torch.tensor([[0.0, 0, 4, 4], [1, 1, 3, 5]], device=device)
    results["boxes"] = numbers(tv.ops.generalized_box_iou(boxes, boxes + 1))
    image = (torch.sigmoid(waves(3, 20, 30)) * 255).to(torch.uint8).to(device)
    floats = torch.sigmoid(waves(2, 3, 20, 30)).to(device)
    for name, change in {
        "resize": lambda x: f.resize(x, [10, 15], antialias=True),
        "crop": lambda x: f.center_crop(x, [8, 9]),
        "flip": lambda x: f.hflip(f.vflip(x)),
        "pad": lambda x: f.pad(x, [1, 2, 3, 4], padding_mode="reflect"),
        "rotate": lambda x: f.rotate(x, 30.0, f.InterpolationMode.BILINEAR),
        "affine": lambda x: f.affine(x, 20.0, [2, 3], 1.1, [5.0, 3.0]),
        "brightness": lambda x: f.adjust_brightness(x, 1.3),
        "contrast": lambda x: f.adjust_contrast(x, 0.7),
        "saturation": lambda x: f.adjust_saturation(x, 1.4),
        "hue": lambda x: f.adjust_hue(x, 0.2),
        "blur": lambda x: f.gaussian_blur(x, [5, 3]),
        "sharpness": lambda x: f.adjust_sharpness(x, 2.0),
        "contrast by itself": f.autocontrast,
        "gray": lambda x: f.rgb_to_grayscale(x, 3),
    }.items():
        results["bytes " + name] = numbers(change(image))
        results["floats " + name] = numbers(change(floats))
    results["equalize"] = numbers(f.equalize(image))
    results["grid"] = numbers(tv.utils.make_grid(floats, nrow=2))
    return results


WORDS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(20))]


def pipeline(device):
    """transformers' pipelines over small models and a tokenizer of its own."""
    import transformers as t
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    tokenizer = t.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
             "num_attention_heads": 2, "vocab_size": len(WORDS)}  # fmt: skip
    bert = t.BertConfig(**sizes, num_labels=3)
    texts = ["word1 word2 word3", "word4 word5"]
    results = {}

    def made(task, model, **options):
        filled(model).eval()
        return t.pipeline(task, model=model, tokenizer=tokenizer, device=device, **options)

    sorts = made("text-classification", t.BertForSequenceClassification(bert), top_k=None)
    found = [sorted(rows, key=lambda r: r["label"]) for rows in sorts(texts, batch_size=2)]
    results["classes"] = [r["score"] for rows in found for r in rows]
    fills = made("fill-mask", t.BertForMaskedLM(bert))
    results["masks"] = [r["score"] for r in fills("word1 [MASK] word3", top_k=4)]
    tags = made("token-classification", t.BertForTokenClassification(bert))
    results["tags"] = [float(r["score"]) for r in tags(texts[0])]
    vectors = made("feature-extraction", t.BertModel(bert))
    results["vectors"] = numbers(vectors(texts[0], return_tensors=True))
    config = t.LlamaConfig(**sizes, num_key_value_heads=2, max_position_embeddings=32,
                           bos_token_id=2, eos_token_id=3, pad_token_id=1)  # fmt: skip
    writes = made("text-generation", t.LlamaForCausalLM(config))
    said = writes(texts, max_new_tokens=5, do_sample=False, return_full_text=False)
    results["text"] = [float(n) for r in said for n in tokenizer(r[0]["generated_text"]).input_ids]
    return results


def loaders(device):
    """datasets' tables read by DataLoader's workers, trained on, written and read again."""
    import numpy as np
    from datasets import Dataset, load_from_disk

    rows = {"x": np.sin(np.arange(64.0)).reshape(16, 4), "y": np.arange(16) % 3,
            "text": [f"row {i}" for i in range(16)]}  # fmt: skip
    table = Dataset.from_dict(rows)
    results = {}

    def collated(batch):
        kept = {k: torch.stack([row[k] for row in batch]) for k in ("x", "y")}
        return {**kept, "length": torch.tensor([len(row["text"]) for row in batch])}

    with tempfile.TemporaryDirectory() as folder:
        table.map(lambda row: {"x": [v * 2 for v in row["x"]]}).save_to_disk(folder)
        again = load_from_disk(folder).with_format("torch")
        streamed = again.to_iterable_dataset(num_shards=4).shuffle(seed=3, buffer_size=4)
        for workers in (0, 2):
            model, losses = filled(nn.Linear(4, 3)).to(device), []
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in DataLoader(
                again, 5, num_workers=workers, collate_fn=collated, shuffle=True,
                generator=torch.Generator().manual_seed(7),
            ):  # fmt: skip
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(
                    model(batch["x"].to(device)), batch["y"].to(device)
                )
                loss.backward()
                optimizer.step()
                losses += [loss.item(), float(batch["length"].sum())]
            results[f"losses {workers}"] = losses
            read = DataLoader(streamed, 4, num_workers=workers)
            results[f"streamed {workers}"] = sorted(numbers(torch.cat([b["x"] for b in read])))
    return results


def e3nn(device):
    import e3nn
    from e3nn import nn as own, o3

    e3nn.set_optimization_defaults(jit_mode="eager")
    x = waves(5, 3).to(device)
    results = {
        "harmonics": numbers(o3.spherical_harmonics([0, 1, 2, 3], x, True)),
        "wigner": numbers(o3.wigner_3j(1, 1, 2)),
    }
    product = o3.FullyConnectedTensorProduct("2x0e+1x1o", "1x0e+1x1o", "2x0e+2x1o")
    linear = o3.Linear("2x0e+2x1o", "3x0e+1x1o")
    with torch.no_grad():
        product.weight.copy_(waves(*product.weight.shape))
        linear.weight.copy_(waves(*linear.weight.shape))
    a, b = waves(4, 5).to(device).requires_grad_(), waves(4, 4, phase=1).to(device)
    y = linear.to(device)(product.to(device)(a, b))
    y.square().sum().backward()
    results["products"] = numbers([y, a.grad, product.weight.grad, linear.weight.grad])
    gate = own.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o").to(device)
    results["gate"] = numbers(gate(waves(3, 6).to(device)))
    return results


def tensordict(device):
    from tensordict import MemoryMappedTensor, TensorDict, tensorclass
    from tensordict.nn import TensorDictModule, TensorDictSequential

    table = TensorDict({"a": waves(4, 3), "b": {"c": waves(4)}}, [4]).to(device)
    results = {
        "slices": numbers([table[1:3]["a"], table["b", "c"], table.reshape(2, 2)["a"]]),
        "sums": numbers([(table * 2 + 1)["a"], table.apply(torch.sin)["b", "c"]]),
        "joined": numbers([torch.stack([table, table])["a"], torch.cat([table, table])["a"]]),
    }
    model = TensorDictSequential(
        TensorDictModule(filled(nn.Linear(3, 2)), ["a"], ["h"]),
        TensorDictModule(torch.tanh, ["h"], ["o"]),
    ).to(device)
    output = model(table.clone())["o"]
    output.sum().backward()
    results["module"] = numbers([output, next(model.parameters()).grad])
    with tempfile.TemporaryDirectory() as folder:
        table.cpu().memmap(folder)
        results["mapped"] = numbers(TensorDict.load_memmap(folder)["a"].clone())
    results["memory"] = numbers(MemoryMappedTensor.from_tensor(waves(3, 2)) + 1)

    @tensorclass
    class Pair:
        x: torch.Tensor
        y: torch.Tensor

    pair = Pair(waves(3, 2).to(device), waves(3).to(device), batch_size=[3])
    results["class"] = numbers([pair[:2].x, torch.stack([pair, pair]).y])
    return results


def gpytorch(device):
    import gpytorch as g
    from botorch.utils.sampling import draw_sobol_samples

    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    results = {"sobol": numbers(draw_sobol_samples(bounds, 8, 2, seed=3))}
    x, y = torch.linspace(0, 1, 12).to(device), waves(12).to(device)

    class Model(g.models.ExactGP):
        def __init__(self, likelihood, kernel):
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = g.means.ConstantMean(), kernel

        def forward(self, t):
            return g.distributions.MultivariateNormal(self.mean(t), self.kernel(t))

    for kernel in (g.kernels.RBFKernel(), g.kernels.MaternKernel(nu=2.5), g.kernels.RQKernel()):
        likelihood = g.likelihoods.GaussianLikelihood()
        model = Model(likelihood, g.kernels.ScaleKernel(kernel)).to(device)
        marginal = g.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.1), []
        for _ in range(3):
            optimizer.zero_grad()
            loss = -marginal(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            told = likelihood.eval()(model(x[:4] + 0.03))
        results[type(kernel).__name__] = losses + numbers([told.mean, told.variance])
    return results


def torch_geometric(device):
    from torch_geometric import data, nn as own, utils

    edges = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 2, 4]]).to(device)
    x, batch = waves(5, 4).to(device), torch.tensor([0, 0, 0, 1, 1]).to(device)
    results = {}
    for name, layer in {
        "gcn": own.GCNConv(4, 3), "gat": own.GATConv(4, 3, heads=2), "sage": own.SAGEConv(4, 3),
        "gin": own.GINConv(nn.Linear(4, 3)), "cheb": own.ChebConv(4, 3, 2),
        "transformer": own.TransformerConv(4, 3, heads=2), "edge": own.EdgeConv(nn.Linear(8, 3)),
    }.items():  # fmt: skip
        results[name] = trained(filled(layer), (x, edges), lambda y: y.square().mean(), device)
    results["pools"] = numbers([own.global_mean_pool(x, batch), own.GraphNorm(4).to(device)(x)])
    both = data.Batch.from_data_list([data.Data(x, edges), data.Data(x * 2, edges)])
    results["batch"] = numbers([both.x, both.batch, both.edge_index])
    results["dense"] = numbers([utils.to_dense_adj(edges), utils.degree(edges[0], 5)])
    return results


def neuralop(device):
    from neuralop.losses import H1Loss, LpLoss
    from neuralop.models import FNO

    model = FNO((8, 8), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2)
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            size = max(1, p[0].numel() if p.dim() else 1) ** 0.5
            value = waves(*p.shape, phase=i)
            if p.is_complex():
                value = torch.complex(value, waves(*p.shape, phase=i + 0.5))
            p.copy_(value / size)
    x = waves(2, 1, 16, 16).to(device)
    results = {"losses": trained(model, (x,), lambda y: LpLoss(d=2)(y, x), device)}
    results["h1"] = numbers(H1Loss(d=2)(x, x * 0.5))
    return results


PROGRAMS = (
    timm, torchvision, pipeline, loaders, e3nn, tensordict, gpytorch, torch_geometric, neuralop,
)  # fmt: skip
