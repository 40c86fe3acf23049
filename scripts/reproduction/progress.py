"""A bar with the trials that are done and left, and the time that the rest may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tqdm import tqdm
from typing_extensions import Self

from reproduction.experiments import Batch, expected_seconds


class ProgressBar:
    """Counts trials; the time left is what the methods took so far, since they differ a lot."""

    def __init__(
        self, batches: Sequence[Batch], *, done: int, workers: int, hidden: bool = False
    ) -> None:
        """Start at what an earlier run has done."""
        self._left = {batch[0].batch: batch for batch in batches}
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._workers = workers
        self._bar = tqdm(
            total=done + sum(map(len, batches)),
            initial=done,
            unit="trial",
            disable=hidden,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f} % |{bar}| {n_fmt} of {total_fmt} trials{postfix}",
        )
        self._show()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def update(self, batch: Batch, records: list[dict[str, Any]]) -> None:
        """Count what is finished."""
        del self._left[batch[0].batch]
        kind = (batch[0].domain, batch[0].method)
        self._seconds[kind].append(records[0]["measured"]["seconds"])
        self._bar.update(len(records))
        self._show()

    def write(self, line: str) -> None:
        """Leave a line above the bar."""
        self._bar.write(line)

    def seconds_left(self) -> float:
        """What the rest may take."""
        return sum(map(self._expect, self._left.values())) / self._workers

    def _expect(self, batch: Batch) -> float:
        taken = self._seconds[batch[0].domain, batch[0].method]
        return sum(taken) / len(taken) if taken else expected_seconds(batch)

    def _show(self) -> None:
        left = sum(map(len, self._left.values()))
        elapsed = tqdm.format_interval(self._bar.format_dict["elapsed"])
        remaining = tqdm.format_interval(self.seconds_left())
        self._bar.set_postfix_str(f"{left} left, {elapsed} so far, about {remaining} to go")
