"""The names of an object's attributes, by its class: interpreted classes list them as slots, compiled ones do not."""


def attribute_names(kind: type) -> tuple[str, ...]:
    """The attributes that an object of this class has by slots or by compilation, those of base classes included."""
    names: dict[str, None] = dict.fromkeys(getattr(kind, "__mypyc_attrs__", ()))
    for base in kind.__mro__:
        names |= dict.fromkeys(getattr(base, "__slots__", ()))
    return tuple(names)
