"""Infos of a step, of which the larger part is made when somebody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State


class LazyInfos(dict[str, Any]):
    """A dictionary with entries that are worked out when a value is first read.

    Most callers of ``step`` never look at its infos, and those of a large batch cost as much as the
    step does. Pickles and copies, also those by ``dict(infos)`` and ``{**infos}``, are plain
    dictionaries.

    >>> infos = LazyInfos.of({"reward": lambda: 2}, {"steps": 1})
    >>> "reward" in infos, len(infos)
    (True, 2)
    >>> infos
    {'reward': 2, 'steps': 1}
    """

    __slots__ = ("_makers",)

    _makers: dict[str, Callable[[], Any]]

    def __new__(cls, *entries: Any, **named: Any) -> Any:
        """A plain dictionary, for wrappers that make another of the same type."""
        return dict(*entries, **named)

    @classmethod
    def of(cls, makers: dict[str, Callable[[], Any]], known: dict[str, Any]) -> LazyInfos:
        """Take functions for the entries to be worked out, and those that are known."""
        infos = dict.__new__(cls)
        dict.update(infos, makers)
        dict.update(infos, known)
        infos._makers = makers
        return infos

    def _complete(self) -> None:
        """Work out what was not written to in the meantime; after an error it can be tried again.

        Two threads may do so at once.
        """
        for key, make in self._makers.items():
            if dict.get(self, key) is make:
                value = make()
                if dict.get(self, key) is make:
                    self[key] = value
        self._makers = {}

    def __iter__(self) -> Iterator[str]:
        """The keys; with this method, whoever copies the dictionary asks for value by value."""
        return super().__iter__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a plain dictionary: what makes an entry may not be able to."""
        return dict, (dict(self),)


def _reading(name: str, *, one: bool) -> Callable[..., Any]:
    """A method of dictionaries that shows values, which are worked out before.

    Args:
        name: of the method.
        one: whether it shows that of one key only, its first argument.
    """
    method = getattr(dict, name)

    def read(self: LazyInfos, *arguments: Any, **named: Any) -> Any:
        if self._makers and not (one and arguments and arguments[0] not in self._makers):
            self._complete()
        if arguments and isinstance(arguments[0], LazyInfos):  # a comparison, or the like
            arguments = (dict(arguments[0]), *arguments[1:])
        return method(self, *arguments, **named)

    read.__name__, read.__doc__ = name, method.__doc__
    return read


for _name in ("__getitem__", "get", "pop", "setdefault"):
    setattr(LazyInfos, _name, _reading(_name, one=True))
for _name in (
    *("items", "values", "popitem", "copy"),
    *("__eq__", "__ne__", "__or__", "__ror__", "__ior__", "__repr__"),
):
    setattr(LazyInfos, _name, _reading(_name, one=False))


class Paid:
    """What each term paid in a step of a batch, worked out when it is read.

    Args:
        mdp: the model.
        state: the states before the step, (B, k) and (B, m).
        actions: (B,); nobody writes to them any more.
        terms: what was paid, (B, scopes), if it is known already.
    """

    __slots__ = ("__weakref__", "_asked", "_lock", "_mdp", "_terms")

    def __init__(
        self, mdp: ExoMDP, state: State, actions: IntArray, terms: FloatArray | None = None
    ) -> None:
        self._mdp = mdp
        self._lock = RLock()  # infos may be read in another thread than that which steps
        self._asked = (state, actions) if terms is None else None
        self._terms = terms

    def work_out(self) -> FloatArray:
        """What each term paid, (B, scopes); a terminal state pays nothing."""
        with self._lock:
            if self._terms is None:
                assert self._asked is not None
                state, actions = self._asked
                terms = self._mdp.reward_terms(state, actions)
                terms[self._mdp.is_terminal(state)] = 0.0
                self._terms = terms
            self._asked = None  # the state may be written to from now on
            return self._terms

    def infos(self, lanes: BoolArray) -> dict[str, Any]:
        """Gymnasium's vector info of the terms, which only some lanes have."""
        if not np.count_nonzero(lanes):
            return {}
        if self._terms is not None:
            return {"reward_terms": self._of(lanes), "_reward_terms": lanes.copy()}
        make = partial(self._of, lanes)
        return LazyInfos.of({"reward_terms": make}, {"_reward_terms": lanes.copy()})

    def _of(self, lanes: BoolArray) -> FloatArray:
        """The terms of some lanes, and zeros for the others: an array of the caller's own."""
        return np.where(lanes[:, None], self.work_out(), 0.0)
