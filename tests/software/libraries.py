"""Runs one library's program on whatever `import torch` gives: LIBRARY FILE, numbers as JSON.

With the stand-in's folder on PYTHONPATH that is mindtorch, else torch. Weights and inputs are
made from sines, so that both compute the same.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch

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
    return model


def lightning():
    import lightning

    class Layer(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.layer(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.1)

    data = torch.utils.data.TensorDataset(waves(16, 4), torch.arange(16) % 2)
    trainer = lightning.Trainer(
        max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        accelerator="cpu", enable_model_summary=False,
    )  # fmt: skip
    model = filled(Layer())
    with torch.no_grad():
        model.layer.bias.zero_()
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4))
    return {"loss": [float(trainer.callback_metrics["loss"])],
            "weight": model.layer.weight.flatten().tolist()}  # fmt: skip


if __name__ == "__main__":
    name, path = sys.argv[1:]
    Path(path).write_text(json.dumps(globals()[name]()))
