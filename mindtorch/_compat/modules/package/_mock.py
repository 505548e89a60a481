# mypy: ignore-errors
"""Owns the objects of mocked modules; packages that mock carry this text."""

_METHODS = (
    "abs add and bool bytes call ceil complex contains copy deepcopy delattr delitem dir divmod"
    " enter eq exit float floor floordiv ge getattr getitem getstate gt hash iadd iand ifloordiv"
    " ilshift imod imul index instancecheck int invert ior ipow irshift isub iter itruediv ixor le"
    " len lshift lt mod mul ne neg or pos pow rand rdivmod reduce reversed rmul round rrshift"
    " rshift setattr setitem sizeof sub subclasscheck truediv trunc xor"
)


class MockedObject:
    """What a mocked module gives for any name: using it is NotImplementedError."""

    _name: str

    def __new__(cls, *args, _suppress_err=False, **kwargs):
        if not _suppress_err:
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging but it is being used in"
                " '__new__'. If this error is happening during 'load_pickle', please ensure that"
                " your pickled object doesn't contain any mocked objects."
            )
        return super().__new__(cls)

    def __init__(self, name: str, _suppress_err: bool):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"


def _refusing(method: str):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in"
            f" {method}"
        )

    return refuse


for _method in _METHODS.split():
    setattr(MockedObject, f"__{_method}__", _refusing(f"__{_method}__"))
