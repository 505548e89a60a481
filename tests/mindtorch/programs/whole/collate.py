"""Dynamic padding, bucketing and collate functions with DataLoader."""
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

torch.manual_seed(0)
PAD, IGNORE = 0, -100

class Texts(Dataset):
    def __init__(self, n=13):
        g = torch.Generator().manual_seed(3)
        lens = torch.randint(2, 10, (n,), generator=g).tolist()
        self.rows = [torch.randint(1, 50, (l,), generator=g) for l in lens]
    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "label": i % 3, "id": f"doc{i}"}

@dataclass
class PadCollator:
    multiple: int = 4
    side: str = "right"

    def __call__(self, batch):
        ids = [b["input_ids"] for b in batch]
        x = pad_sequence(ids, batch_first=True, padding_value=PAD, padding_side=self.side)
        extra = -x.size(1) % self.multiple
        pad = (0, extra) if self.side == "right" else (extra, 0)
        x = torch.nn.functional.pad(x, pad, value=PAD)
        mask = (x != PAD).long()
        return {
            "input_ids": x,
            "attention_mask": mask,
            "labels": x.masked_fill(mask == 0, IGNORE),
            "y": torch.tensor([b["label"] for b in batch]),
            "ids": [b["id"] for b in batch],
        }

class BucketBatchSampler(Sampler):
    """Batches of near-equal length with a token budget, batch order shuffled."""

    def __init__(self, lengths, max_tokens, seed=0):
        self.lengths, self.max_tokens, self.seed, self.epoch = lengths, max_tokens, seed, 0

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: (self.lengths[i], i))
        batches, cur = [], []
        for i in order:
            if cur and self.lengths[i] * (len(cur) + 1) > self.max_tokens:
                batches.append(cur)
                cur = []
            cur.append(i)
        batches.append(cur)
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for j in torch.randperm(len(batches), generator=g).tolist():
            yield batches[j]

ds = Texts()
lens = [len(r) for r in ds.rows]
print("lengths", lens)
for b in DataLoader(ds, batch_size=5, collate_fn=PadCollator()):
    print("plain", tuple(b["input_ids"].shape), b["attention_mask"].sum(1).tolist(), b["ids"][0], b["y"].dtype)
left = next(iter(DataLoader(ds, batch_size=2, collate_fn=PadCollator(multiple=1, side="left"))))
print("left", left["input_ids"].tolist())
print("labels", left["labels"][:, :3].tolist())

sampler = BucketBatchSampler(lens, max_tokens=24)
used = waste = 0
for b in DataLoader(ds, batch_sampler=sampler, collate_fn=PadCollator(multiple=1)):
    n, t = b["input_ids"].shape
    used += n * t
    waste += int((b["attention_mask"] == 0).sum())
    print("bucket", (n, t), b["ids"])
print("padding waste", waste, "of", used)

# default_collate on nested structures
item = {"a": 1, "b": 2.5, "c": ("x", torch.ones(2)), "d": [True, False]}
out = default_collate([item, item])
print({k: (v.dtype if torch.is_tensor(v) else v) for k, v in out.items()})
for bad in ([torch.ones(2), torch.ones(3)], [{"a": object()}], [[1, 2], [1]]):
    try:
        default_collate(bad)
    except (RuntimeError, TypeError) as e:
        print(type(e).__name__, str(e).split("<")[0][:90])

loader = DataLoader(ds, batch_size=4, shuffle=True, drop_last=True, collate_fn=PadCollator(), generator=torch.Generator().manual_seed(9))
print("len", len(loader), [b["ids"] for b in loader])
