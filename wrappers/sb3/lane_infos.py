"""Gymnasium's infos of a batch as SB3's: a list with a dictionary for each lane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

Infos = list[dict[str, Any]]


class LaneInfos(Infos):
    """A list of dictionaries that are made when somebody first reads it.

    Most steps end no episode, and then few readers want to know more: at 512 lanes the
    dictionaries take about as long as the step itself. Whatever is made of such a list, by
    slicing, copying, pickling or calling its type, is an ordinary list.
    """

    __slots__ = ("_make",)
    _make: Callable[[], Infos]

    def __new__(cls, *items: Any) -> Any:
        """An ordinary list; :meth:`unread` makes the other kind."""
        return list(*items)

    @staticmethod
    def unread(make: Callable[[], Infos]) -> Infos:
        """What ``make`` will return, as a list that calls it when it is first read or changed."""
        infos: LaneInfos = list.__new__(_Unread)
        infos._make = make
        return infos

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickles and deep copies are ordinary lists."""
        return list, (list(self),)


class _Unread(LaneInfos):
    """The list before it is read: each method of lists has to make the dictionaries first."""

    __slots__ = ()

    def _read(self) -> None:
        """Make the dictionaries. An interrupt, or another thread that does the same, is no harm."""
        make = getattr(self, "_make", None)
        if make is None:  # another thread was faster
            return
        list.__setitem__(self, slice(None), make())
        self.__class__ = LaneInfos  # type: ignore[assignment]  # from now on the methods are those of lists
        with suppress(AttributeError):
            del self._make  # with all the arrays that it keeps

    def __radd__(self, other: Any) -> Any:
        """Make the dictionaries: lists look straight into the memory of what is added to them."""
        self._read()
        return NotImplemented

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._read()
        return LaneInfos.__reduce_ex__(self, protocol)


def _reading(name: str) -> Any:
    of_list = getattr(list, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        for infos in (self, *args):
            if type(infos) is _Unread:
                infos._read()
        return of_list(self, *args, **kwargs)

    method.__name__ = name
    return method


_BEFORE_IT_IS_FILLED = {"__new__", "__init__", "__getattribute__", "__class_getitem__"}
for _name, _method in vars(list).items():
    if callable(_method) and _name not in _BEFORE_IT_IS_FILLED:
        setattr(_Unread, _name, _reading(_name))


def lane_infos(
    infos: Mapping[str, Any],
    num_envs: int,
    lanes: NDArray[np.intp] | None = None,
    *,
    without: Collection[str] = (),
) -> Infos:
    """Gymnasium's vector infos lane by lane; ``infos["_key"]`` says who has a ``"key"``.

    Args:
        infos: of all lanes.
        num_envs: how many those are.
        lanes: which of them are wanted; by default all.
        without: keys that are left out.
    """
    made: Infos = [{} for _ in range(num_envs if lanes is None else len(lanes))]
    for key in infos:
        if key in without or (key[:1] == "_" and key[1:] in infos):
            continue
        mask = infos.get("_" + key)
        if mask is None or np.count_nonzero(mask) == num_envs:
            column = _lane_values(infos[key], num_envs, lanes)
            for info, value in zip(made, column, strict=False):
                info[key] = value
        elif len(having := np.flatnonzero(mask if lanes is None else mask[lanes])):
            column = _lane_values(infos[key], num_envs, lanes)
            for index in having.tolist():
                made[index][key] = column[index]
    return made


def _lane_values(values: Any, num_envs: int, lanes: NDArray[np.intp] | None) -> Any:
    """A sequence of what each lane has."""
    if isinstance(values, np.ndarray) and values.shape[:1] == (num_envs,):
        if lanes is not None:
            values = values[lanes]
        # Numbers are those of Python, as single environments give them; rows are arrays.
        return values.tolist() if values.ndim == 1 else values
    if isinstance(values, dict):
        return lane_infos(values, num_envs, lanes)
    return [values] * num_envs  # about the batch, not about its lanes
