import torch, sys
from torch.utils.data import (
    Dataset,
    DataLoader,
    IterableDataset,
    TensorDataset,
    random_split,
    WeightedRandomSampler,
    BatchSampler,
    SequentialSampler,
    ConcatDataset,
    Subset,
)

dev = sys.argv[1]


class D(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return {"x": torch.full((2,), float(i)), "n": i, "s": f"item{i}"}


for b in DataLoader(D(), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(2)):
    print(b["x"].to(dev), b["n"], b["s"])
a, b = random_split(range(10), [0.7, 0.3], generator=torch.Generator().manual_seed(1))
print(list(a), list(b), len(a))
print(list(WeightedRandomSampler([0.1, 0.9, 0.5], 5, generator=torch.Generator().manual_seed(0))))
print(list(BatchSampler(SequentialSampler(range(5)), 2, False)))
ds = TensorDataset(torch.arange(4), torch.arange(4.0))
print(ds[1], len(ConcatDataset([ds, ds])), Subset(ds, [2])[0])
it = iter(DataLoader(ds, batch_size=2, drop_last=True, num_workers=0))
print(next(it), next(it))
try:
    next(it)
except StopIteration:
    print("stop")


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


print(list(DataLoader(Stream(), batch_size=2, num_workers=1)))
