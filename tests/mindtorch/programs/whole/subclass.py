import torch, sys

dev = sys.argv[1]


class Unit(torch.Tensor):
    @staticmethod
    def __new__(cls, data, unit="m"):
        t = torch.as_tensor(data).as_subclass(cls)
        t.unit = unit
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        r = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(r, cls):
            r.unit = next((a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")), "?")
        return r


a = Unit(torch.tensor([1.0, 2.0], device=dev))
b = a * 3
print(
    type(b).__name__, b.unit, b, a.sum(), a[0], (a + 1).unit, torch.stack([a, a]).__class__.__name__
)
print(
    isinstance(a, torch.Tensor), a.shape, torch.Tensor.add(a, 1), repr(a.as_subclass(torch.Tensor))
)


class Log:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func.__name__, len(args)


print(torch.add(Log(), 1), torch.cat([Log()]), torch.nn.functional.relu(Log()))


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("call", func.__name__)
        return func(*args, **(kwargs or {}))


with Mode():
    torch.ones(2, device=dev).add(1)
p = torch.nn.Parameter(a)
print(type(p).__name__, isinstance(p, torch.nn.Parameter), p)
