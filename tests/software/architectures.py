"""Runs one architecture of transformers through its stages, and writes what came of each.

    python architectures.py NAME DEVICE FOLDER

Run by torch first, it leaves its weights in FOLDER; run by mindtorch, it loads them. Numbers go to
FOLDER/NAME.DEVICE.WHO.json, a stage that fails as `{"error": …}`.
"""

import json
import sys
import traceback
from pathlib import Path

import beside
import numpy as np
import torch
import transformers as hf

TEXT = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 63}  # fmt: skip
BERT = {k: v for k, v in TEXT.items() if k != "num_key_value_heads"}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
          "num_attention_heads": 4, "image_size": 16, "patch_size": 4}  # fmt: skip


def ids(n=7, low=2):
    return torch.from_numpy(np.random.default_rng(0).integers(low, 60, (2, n)))


def floats(*shape):
    return torch.from_numpy(np.random.default_rng(1).normal(size=shape).astype("float32"))


def causal(kind, **options):
    return lambda: (getattr(hf, kind + "ForCausalLM"), getattr(hf, kind + "Config")(**options))


def text():
    return {"input_ids": ids(), "labels": ids(), "attention_mask": torch.ones(2, 7).long()}


def pair():
    return {"input_ids": ids(), "labels": ids(5), "attention_mask": torch.ones(2, 7).long()}


def image(size=16, **more):
    return lambda: {"pixel_values": floats(2, 3, size, size), **more}


def labelled(name, config, inputs, **options):
    return (lambda: (getattr(hf, name), getattr(hf, config)(num_labels=3, **options)), inputs, None)


def clip():
    text_part = {**BERT, "projection_dim": 16}
    config = hf.CLIPConfig(text_config=text_part, vision_config=VISION, projection_dim=16)
    return hf.CLIPModel, config


def qwen_vl():
    text_part = {**TEXT, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}
    vision = {"depth": 2, "embed_dim": 32, "num_heads": 4, "mlp_ratio": 2, "hidden_size": 32,
              "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}  # fmt: skip
    config = hf.Qwen2VLConfig(text_config=text_part, vision_config=vision, image_token_id=61,
                              vision_start_token_id=60, video_token_id=62)  # fmt: skip
    return hf.Qwen2VLForConditionalGeneration, config


def qwen_vl_inputs():
    tokens = ids(12)
    tokens[:, 1], tokens[:, 2:6] = 60, 61
    return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones(2, 12).long(),
            "pixel_values": floats(32, 3 * 2 * 16), "mm_token_type_ids": (tokens == 61).int(),
            "image_grid_thw": torch.tensor([[1, 4, 4]] * 2)}  # fmt: skip


MOE = {"num_experts_per_tok": 2, "num_local_experts": 4}
DEEPSEEK = {**TEXT, "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
            "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16, "q_lora_rank": 16,
            "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
            "first_k_dense_replace": 1}  # fmt: skip
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 63}  # fmt: skip
T5 = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
      "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 63}  # fmt: skip
BART = {"vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "max_position_embeddings": 64, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 63, "decoder_start_token_id": 2,
        "forced_eos_token_id": None}  # fmt: skip
WHISPER = {**BART, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 32,
           "suppress_tokens": None, "begin_suppress_tokens": None}  # fmt: skip
WAV = {**BERT, "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 3),
       "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "mask_time_prob": 0.0,
       "num_conv_pos_embedding_groups": 4, "conv_bias": True}  # fmt: skip
GEMMA = {**TEXT, "head_dim": 8}

# name: (class and config, inputs, prompt of generate or None).
MODELS = {
    "llama": (causal("Llama", **TEXT), text, ids),
    "qwen2": (causal("Qwen2", **TEXT), text, ids),
    "qwen3": (causal("Qwen3", **TEXT, head_dim=8), text, ids),
    "mistral": (causal("Mistral", **TEXT), text, ids),
    "mixtral": (causal("Mixtral", **TEXT, **MOE), text, ids),
    "deepseek_v3": (causal("DeepseekV3", **DEEPSEEK), text, ids),
    "gemma2": (causal("Gemma2", **GEMMA), text, ids),
    "gemma3": (lambda: (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig(**GEMMA)), text, ids),
    "phi3": (causal("Phi3", **TEXT), text, ids),
    "gpt2": (lambda: (hf.GPT2LMHeadModel, hf.GPT2Config(**GPT2)), text, ids),
    "gpt_neox": (causal("GPTNeoX", **BERT), text, ids),
    "bloom": (causal("Bloom", vocab_size=64, hidden_size=32, n_layer=2, n_head=4, pad_token_id=0,
                     bos_token_id=1, eos_token_id=63), text, ids),
    "opt": (causal("OPT", **{**BERT, "ffn_dim": 48, "word_embed_proj_dim": 32}), text, ids),
    "mamba": (causal("Mamba", vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=8,
                     pad_token_id=0, bos_token_id=1, eos_token_id=63),
              lambda: {"input_ids": ids(), "labels": ids()}, ids),
    "bert": (lambda: (hf.BertForMaskedLM, hf.BertConfig(**BERT)), text, None),
    "roberta": (lambda: (hf.RobertaForMaskedLM, hf.RobertaConfig(**BERT)), text, None),
    "distilbert": (lambda: (hf.DistilBertForMaskedLM, hf.DistilBertConfig(
        vocab_size=64, dim=32, hidden_dim=48, n_layers=2, n_heads=4)), text, None),
    "t5": (lambda: (hf.T5ForConditionalGeneration, hf.T5Config(**T5)), pair, ids),
    "bart": (lambda: (hf.BartForConditionalGeneration, hf.BartConfig(**BART)), pair, ids),
    "whisper": (lambda: (hf.WhisperForConditionalGeneration, hf.WhisperConfig(**WHISPER)),
                lambda: {"input_features": floats(2, 8, 32), "labels": ids(5)},
                lambda: floats(2, 8, 32)),
    "wav2vec2": (lambda: (hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**WAV)),
                 lambda: {"input_values": floats(2, 400), "labels": ids(5)}, None),
    "vit": labelled("ViTForImageClassification", "ViTConfig",
                    image(labels=torch.tensor([0, 1])), **VISION),
    "clip": (clip, lambda: {"pixel_values": floats(2, 3, 16, 16), "input_ids": ids(),
                            "return_loss": True}, None),
    "segformer": labelled("SegformerForSemanticSegmentation", "SegformerConfig",
                          image(32, labels=torch.zeros(2, 32, 32).long()), depths=[1, 1, 1, 1],
                          hidden_sizes=[8, 16, 16, 32], decoder_hidden_size=16,
                          num_attention_heads=[1, 2, 2, 4]),
    "resnet": labelled("ResNetForImageClassification", "ResNetConfig",
                       image(32, labels=torch.tensor([0, 1])), embedding_size=8,
                       hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
    "qwen2_vl": (qwen_vl, qwen_vl_inputs, None),
}  # fmt: skip


def numbers(tensor):
    return tensor.detach().float().cpu().double().reshape(-1)[:400].tolist()


def first_output(result):
    return next(v for k, v in result.items() if k != "loss" and isinstance(v, torch.Tensor))


class Run:
    """The stages of one architecture on one device."""

    def __init__(self, name, device, folder):
        self.build, inputs, self.prompt = MODELS[name]
        self.inputs = inputs
        self.name, self.device, self.folder = name, device, folder

    def batch(self):
        return {k: v.to(self.device) if isinstance(v, torch.Tensor) else v
                for k, v in self.inputs().items()}  # fmt: skip

    def construct(self):
        torch.manual_seed(0)
        cls, config = self.build()
        self.model = cls(config)
        return sorted(self.model.state_dict())

    def load(self):
        path = self.folder / f"{self.name}.pt"
        if not path.exists():
            torch.save(self.model.state_dict(), path)
        self.model.load_state_dict(torch.load(path))
        self.model.to(self.device).eval()
        return [float(p.double().sum()) for p in self.model.to("cpu").parameters()]

    def forward(self):
        self.model.to(self.device)
        with torch.no_grad():
            return numbers(first_output(self.model(**self.batch())))

    def backward(self):
        loss = self.model(**self.batch()).loss
        loss.backward()
        norms = [float(p.grad.cpu().double().norm()) for p in self.model.parameters()
                 if p.grad is not None]  # fmt: skip
        self.model.zero_grad()
        return [float(loss), *norms]

    def greedy(self):
        return self._generate(do_sample=False)

    def beam(self):
        return self._generate(do_sample=False, num_beams=3)

    def sampled(self):
        if self.device != "cpu":
            return None  # a device's generator is its own
        torch.manual_seed(3)
        return self._generate(do_sample=True)

    def _generate(self, **options):
        if self.prompt is None:
            return None
        prompt = self.prompt().to(self.device)
        return self.model.generate(prompt, max_new_tokens=6, **options).cpu().tolist()

    def save(self):
        where = self.folder / f"saved.{self.name}.{self.device}"
        self.model.to("cpu").save_pretrained(where)
        again = type(self.model).from_pretrained(where).to(self.device).eval()
        self.model.to(self.device)
        with torch.no_grad():
            return numbers(first_output(again(**self.batch())))

    def half(self):
        model = type(self.model)(self.model.config)
        model.load_state_dict(self.model.state_dict())
        model = model.to(self.device).to(torch.bfloat16).eval()
        batch = {k: v.to(torch.bfloat16) if isinstance(v, torch.Tensor) and v.is_floating_point()
                 else v for k, v in self.batch().items()}  # fmt: skip
        with torch.no_grad():
            return numbers(first_output(model(**batch)))

    def train(self):
        torch.manual_seed(0)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        losses = []
        for _ in range(3):
            loss = self.model(**self.batch()).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
        return losses


STAGES = ("construct", "load", "forward", "backward", "greedy", "beam", "sampled", "save", "half",
          "train")  # fmt: skip


def main(names, device, folder):
    who = "mindtorch" if "mindtorch" in torch.__version__ else "torch"
    for name in MODELS if names == "all" else names.split(","):
        run, results = Run(name, device, Path(folder)), {}
        for stage in STAGES:
            try:
                results[stage] = getattr(run, stage)()
            except Exception as error:
                text = traceback.format_exc().splitlines()
                results[stage] = {"error": f"{type(error).__name__}: {error}"[:500],
                                  "where": text[-12:]}  # fmt: skip
                if stage in ("construct", "load"):
                    break
        (Path(folder) / f"{name}.{device}.{who}.json").write_text(json.dumps(results))
        errors = {s: r["error"][:150] for s, r in results.items() if isinstance(r, dict)}
        print(name, device, who, errors or "ok", flush=True)


if __name__ == "__main__":
    beside.declare()
    main(*sys.argv[1:])
