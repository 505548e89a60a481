"""What torch gives for the rows of indexing."""

import torch

from ._arguments import t


def searched(a):
    sorter = None if a["sorter"] is None else t(a["sorter"])
    return torch.searchsorted(t(a["sortedSequence"]), t(a["self"]), right=a["right"], sorter=sorter)


def distinct(a, **dim):
    """Values, and what the call asks for of places and counts."""
    values, places, counts = torch.unique(t(a["self"]), True, True, True, **dim)
    asks = a["returnInverse"], a.get("returnCounts", True)
    return values, places if asks[0] else None, counts if asks[1] else None


def consecutive(a):
    dim = None if a["dim"] == 1000 else a["dim"]
    values, places, counts = torch.unique_consecutive(t(a["self"]), True, True, dim)
    return (values, places if a["returnInverse"] else None,
            counts if a["returnCounts"] else None)  # fmt: skip


def scattered(a):
    """torch has a reduction as a word, and takes a number as the source."""
    word = {1: {"reduce": "add"}, 2: {"reduce": "multiply"}}.get(a["reduce"], {})
    source = t(a["src"]) if "src" in a else a["value"]
    return t(a["self"]).scatter(a["dim"], t(a["index"]).long(), source, **word)


ORACLES = {
    "aclnnScatter": scattered,
    "aclnnScatterValue": scattered,
    "aclnnTake": lambda a: torch.take(t(a["self"]), t(a["index"])),
    "aclnnIndexCopy": lambda a: torch.index_copy(
        t(a["selfRef"]), a["dim"], t(a["index"]), t(a["source"])
    ),
    "aclnnInplaceMaskedScatter": lambda a: t(a["selfRef"]).masked_scatter(
        t(a["mask"]), t(a["source"])
    ),
    "aclnnInplacePut": lambda a: t(a["selfRef"]).put(
        t(a["index"]), t(a["source"]), a["accumulate"]
    ),
    "aclnnNonzero": lambda a: torch.nonzero(t(a["self"])),
    "aclnnBucketize": lambda a: torch.bucketize(t(a["self"]), t(a["boundaries"]), right=a["right"]),
    "aclnnSearchSorted": searched,
    "aclnnUnique2": distinct,
    "aclnnIndexAddV2": lambda a: torch.index_add(
        t(a["self"]), a["dim"], t(a["index"]), t(a["source"]), alpha=a["alpha"]
    ),
    "aclnnGatherNd": lambda a: t(a["self"])[t(a["indices"])[:, 0], t(a["indices"])[:, 1]],
    "aclnnGatherV3": lambda a: (
        torch.take_along_dim(t(a["self"]), t(a["index"]).unsqueeze(3 - a["dim"] % 3), a["dim"])
        if a["batchDims"]
        else t(a["self"])[t(a["index"])]
    ),
    "aclnnScatterNd": lambda a: t(a["data"]).index_put(tuple(t(a["indices"]).T), t(a["updates"])),
    "aclnnScatterNdUpdate": lambda a: t(a["varRef"]).index_put(
        tuple(t(a["indices"]).T), t(a["updates"])
    ),
    "aclnnGatherV2": lambda a: torch.index_select(
        t(a["self"]), a["dim"], t(a["index"]).flatten()
    ).unflatten(a["dim"] % a["self"].ndim, a["index"].shape),
    "aclnnIndexFillTensor": lambda a: t(a["self"]).index_fill(
        a["dim"], torch.tensor(a["index"]), a["value"]
    ),
    "aclnnMaskedSelect": lambda a: torch.masked_select(t(a["self"]), t(a["mask"])),
    "aclnnNonzeroV2": lambda a: torch.nonzero(t(a["self"])).T,
    "aclnnSearchSorteds": lambda a: searched({**a, "self": torch.tensor(a["self"])}),
    "aclnnIsInScalarTensor": lambda a: torch.isin(
        a["element"], t(a["testElements"]), invert=a["invert"]
    ),
    "aclnnIsInTensorScalar": lambda a: torch.isin(
        t(a["element"]), a["testElement"], invert=a["invert"]
    ),
    "aclnnUnique": distinct,
    "aclnnUniqueConsecutive": consecutive,
    "aclnnUniqueDim": lambda a: distinct(a, dim=a["dim"]),
}
