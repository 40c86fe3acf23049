"""The functions and distributions of RDDL, for arrays, with pyRDDLGym's conventions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["bool", "int", "real"]
Array: TypeAlias = NDArray[Any]
DTYPES: dict[str, Any] = {"bool": np.bool_, "int": np.int64, "real": np.float64}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
}
#: Functions of two values that are computed one after another of any number of them.
FOLDS: dict[str, Any] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "add": np.add,
    "mul": np.multiply,
}
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def numeric_kind(kinds: Iterable[Kind]) -> Kind:
    """The type of a sum: real if any part is, else whole."""
    return "real" if "real" in kinds else "int"


def _to_whole(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Whole values as integers; what is no number stays far outside every range."""

    def whole(*args: Any) -> Any:
        values = compute(*args)
        return np.nan_to_num(values, nan=0.0, posinf=2.0**62, neginf=-(2.0**62)).astype(np.int64)

    return whole


def _power(base: Any, exponent: Any) -> Any:
    values = np.power(np.asarray(base, dtype=np.float64), exponent)
    if np.asarray(base).dtype.kind == "f" or np.asarray(exponent).dtype.kind == "f":
        return values
    return _to_whole(np.round)(values)


@dataclass(frozen=True, slots=True)
class Function:
    arity: int
    compute: Callable[..., Any]
    #: The type of its values; None if that is the arguments'.
    kind: Kind | None
    #: Larger for larger arguments, each of them: its range is that of the ends of theirs.
    is_increasing: bool = False
    #: Between these, whatever the arguments.
    low: float = -math.inf
    high: float = math.inf


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, np.abs, None, low=0),
    "sgn": Function(1, _to_whole(np.sign), "int", is_increasing=True),
    "round": Function(1, _to_whole(np.round), "int", is_increasing=True),
    "floor": Function(1, _to_whole(np.floor), "int", is_increasing=True),
    "ceil": Function(1, _to_whole(np.ceil), "int", is_increasing=True),
    "cos": Function(1, np.cos, "real", low=-1, high=1),
    "sin": Function(1, np.sin, "real", low=-1, high=1),
    "tan": Function(1, np.tan, "real"),
    "acos": Function(1, np.arccos, "real", low=0, high=math.pi),
    "asin": Function(1, np.arcsin, "real", is_increasing=True),
    "atan": Function(1, np.arctan, "real", is_increasing=True),
    "cosh": Function(1, np.cosh, "real", low=1),
    "sinh": Function(1, np.sinh, "real", is_increasing=True),
    "tanh": Function(1, np.tanh, "real", is_increasing=True),
    "exp": Function(1, np.exp, "real", is_increasing=True),
    "ln": Function(1, np.log, "real", is_increasing=True),
    "sqrt": Function(1, np.sqrt, "real", is_increasing=True),
    "lngamma": Function(1, _log_gamma, "real"),
    "gamma": Function(1, lambda x: np.exp(_log_gamma(x)), "real", low=0),
    "div": Function(2, _to_whole(np.floor_divide), "int"),
    "mod": Function(2, _to_whole(np.mod), "int"),
    "fmod": Function(2, np.mod, None),
    "min": Function(2, np.minimum, None, is_increasing=True),
    "max": Function(2, np.maximum, None, is_increasing=True),
    "pow": Function(2, _power, None),
    "log": Function(2, lambda x, y: np.log(x) / np.log(y), "real"),
    "hypot": Function(2, np.hypot, "real", low=0),
}
#: How operations are computed, given the values of their arguments.
COMPUTED: dict[str, Callable[..., Any]] = {
    "not": np.logical_not,
    "int": lambda values: np.asarray(values).astype(np.int64),
    "quotient": np.divide,
    "if": np.where,
    **COMPARISONS,
    **{name: function.compute for name, function in FUNCTIONS.items()},
}


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution: ``draw(rng, size, *arguments)``.

    Attributes:
        draw: draws ``size`` values, the arguments being numbers or arrays of that size.
        kind: the type of its values.
        ranges: the (low, high) within which each argument makes sense; none if it takes any number
            of them.
        low: no value is smaller.
        high: no value is larger.
        mean: its mean, given the arguments as nodes of a graph, if that is simple.
    """

    draw: Callable[..., Any]
    kind: Kind
    ranges: tuple[tuple[float, float], ...] = ()
    low: float = -math.inf
    high: float = math.inf
    mean: Callable[..., Any] | None = None


_ANY, _NONNEGATIVE, _CHANCE = (-math.inf, math.inf), (0.0, math.inf), (0.0, 1.0)
_POSITIVE = (float(np.finfo(np.float64).tiny), math.inf)


def _by_numpy(name: str) -> Callable[..., Any]:
    """A method of generators, with the arguments in its order."""
    return lambda rng, n, *args: getattr(rng, name)(*args, n)


def _scaled(name: str) -> Callable[..., Any]:
    """A method of generators times the last argument."""
    return lambda rng, n, *args: args[-1] * getattr(rng, name)(*args[:-1], n)


def _draw_index(rng: np.random.Generator, size: int, *weights: Any) -> Any:
    """The position of a weight, with a chance in proportion."""
    totals = np.cumsum(np.broadcast_arrays(*weights, np.empty(size))[:-1], axis=0)
    return (rng.random(size) * totals[-1] >= totals[:-1]).sum(axis=0)


def _draw_kumaraswamy(rng: np.random.Generator, size: int, a: Any, b: Any) -> Any:
    return (1.0 - rng.random(size) ** (1.0 / b)) ** (1.0 / a)


def _draw_gompertz(rng: np.random.Generator, size: int, shape: Any, scale: Any) -> Any:
    return np.log(1.0 - np.log1p(-rng.random(size)) / shape) / scale


def _first(_graph: Any, first: Any, *_: Any) -> Any:
    return first


def _product(graph: Any, *args: Any) -> Any:
    return graph.multiply(args)


def _middle(graph: Any, low: Any, high: Any) -> Any:
    return graph.multiply((graph.constant(0.5), graph.add((low, high))))


#: The names are RDDL's; ``Normal`` has a variance and ``Exponential`` a scale, as in pyRDDLGym.
DISTRIBUTIONS: dict[str, Distribution] = {
    "Bernoulli": Distribution(lambda rng, n, p: rng.random(n) < p, "bool", (_CHANCE,), mean=_first),
    "Discrete": Distribution(_draw_index, "int", low=0),
    "UnnormDiscrete": Distribution(_draw_index, "int", low=0),
    "Normal": Distribution(
        lambda rng, n, mean, variance: mean + np.sqrt(variance) * rng.standard_normal(n),
        "real",
        (_ANY, _NONNEGATIVE),
        mean=_first,
    ),
    "Uniform": Distribution(
        lambda rng, n, low, high: low + (high - low) * rng.random(n),
        "real",
        (_ANY, _ANY),
        mean=_middle,
    ),
    "Poisson": Distribution(_by_numpy("poisson"), "int", (_NONNEGATIVE,), low=0, mean=_first),
    "Exponential": Distribution(
        _scaled("standard_exponential"), "real", (_POSITIVE,), low=0, mean=_first
    ),
    "Weibull": Distribution(_scaled("weibull"), "real", (_POSITIVE,) * 2, low=0),
    "Gamma": Distribution(
        _scaled("standard_gamma"), "real", (_POSITIVE,) * 2, low=0, mean=_product
    ),
    "Binomial": Distribution(
        _by_numpy("binomial"), "int", (_NONNEGATIVE, _CHANCE), low=0, mean=_product
    ),
    "NegativeBinomial": Distribution(
        _by_numpy("negative_binomial"), "int", (_POSITIVE, _CHANCE), low=0
    ),
    "Beta": Distribution(_by_numpy("beta"), "real", (_POSITIVE,) * 2, low=0, high=1),
    "Geometric": Distribution(_by_numpy("geometric"), "int", ((_POSITIVE[0], 1.0),), low=1),
    "Pareto": Distribution(_scaled("pareto"), "real", (_POSITIVE,) * 2, low=0),
    "Student": Distribution(_by_numpy("standard_t"), "real", (_POSITIVE,)),
    "Gumbel": Distribution(_by_numpy("gumbel"), "real", (_ANY, _POSITIVE)),
    "Laplace": Distribution(_by_numpy("laplace"), "real", (_ANY, _POSITIVE), mean=_first),
    "Cauchy": Distribution(
        lambda rng, n, mean, scale: mean + scale * rng.standard_cauchy(n),
        "real",
        (_ANY, _POSITIVE),
    ),
    "Gompertz": Distribution(_draw_gompertz, "real", (_POSITIVE,) * 2, low=0),
    "ChiSquare": Distribution(_by_numpy("chisquare"), "real", (_POSITIVE,), low=0),
    "Kumaraswamy": Distribution(_draw_kumaraswamy, "real", (_POSITIVE,) * 2, low=0, high=1),
}
