"""Beam search of eleven small Hugging Face models on the device of argument 1.

Prints a JSON line per model: its name, the tokens of three beams, then the tokens and scores of two
sequences out of four beams under penalties. More arguments name the models.
"""

import json
import sys

import torch
import transformers as hf

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 64}  # fmt: skip
TOKENS = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GROUPED = {**SMALL, "num_key_value_heads": 2}
SEQUENCES = {"decoder_start_token_id": 0, **TOKENS}

DECODERS = {
    "Llama": GROUPED,
    "Mistral": GROUPED,
    "Qwen2": GROUPED,
    "Gemma": {**GROUPED, "head_dim": 8},
    "Phi": SMALL,
    "GPTNeoX": SMALL,
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "OPT": {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 64, "word_embed_proj_dim": 32},
    "Bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
}  # fmt: skip
BOTH = {
    "T5": {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4},
    "Bart": {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_layers": 2,
             "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
             "max_position_embeddings": 64, "forced_eos_token_id": None},
}  # fmt: skip


def models():
    for name, config in DECODERS.items():
        kind = "LMHeadModel" if name == "GPT2" else "ForCausalLM"
        yield name, getattr(hf, name + kind), getattr(hf, name + "Config")(**config, **TOKENS)
    for name, config in BOTH.items():
        kind = getattr(hf, name + "ForConditionalGeneration")
        yield name, kind, getattr(hf, name + "Config")(**config, **SEQUENCES)


def beams(kind, config, device):
    torch.manual_seed(0)
    model = kind(config).eval().to(device)
    torch.manual_seed(1)
    prompt = torch.randint(3, 100, (2, 6))
    mask = torch.ones_like(prompt)
    mask[1, :2] = 0  # the second prompt is shorter
    asked = {"attention_mask": mask.to(device), "do_sample": False, "max_new_tokens": 8}
    plain = model.generate(prompt.to(device), num_beams=3, **asked)
    several = model.generate(
        prompt.to(device), num_beams=4, num_return_sequences=2, length_penalty=0.5,
        no_repeat_ngram_size=2, repetition_penalty=1.2, return_dict_in_generate=True,
        output_scores=True, **asked,
    )  # fmt: skip
    scores = [round(score, 4) for score in several.sequences_scores.tolist()]
    return plain.tolist(), several.sequences.tolist(), scores


if __name__ == "__main__":
    if sys.argv[1] == "npu":
        import torch_npu  # noqa: F401  registers the device
    chosen = sys.argv[2:]
    for name, kind, config in models():
        if not chosen or name in chosen:
            print(json.dumps([name, *beams(kind, config, sys.argv[1])]), flush=True)
