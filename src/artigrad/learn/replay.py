"""Transitions that were seen, kept to learn from again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Replay:
    """The last `capacity` transitions, as rows of named tensors. Memory grows as rows come in."""

    def __init__(self, capacity: int, device: torch.device):
        self.capacity, self.device = capacity, device
        self.rows: dict[str, Tensor] = {}
        self.count, self.next = 0, 0

    def add(self, **new: Tensor) -> None:
        """Rows (n, ...) by name, the same names each time; the oldest give way."""
        n = len(next(iter(new.values())))
        room = min(self.capacity, max(2 * self.count, self.next + n, 1024))
        for name, x in new.items():
            if name not in self.rows or (len(self.rows[name]) < room and self.next + n > len(self.rows[name])):
                grown = torch.zeros(room, *x.shape[1:], dtype=x.dtype, device=self.device)
                if name in self.rows:
                    grown[: self.count] = self.rows[name][: self.count]
                self.rows[name] = grown
        size = len(self.rows[next(iter(new))])
        at = (self.next + torch.arange(n, device=self.device)) % size
        for name, x in new.items():
            self.rows[name][at] = x.detach()
        self.next = (self.next + n) % self.capacity
        self.count = min(self.count + n, size)

    def at(self, rows: Tensor) -> dict[str, Tensor]:
        return {name: x[rows] for name, x in self.rows.items()}

    def any(self, count: int, generator: torch.Generator) -> Tensor:
        """Random rows; some may come twice."""
        return torch.randint(self.count, (count,), generator=generator, device=self.device)

    def sample(self, count: int, generator: torch.Generator) -> dict[str, Tensor]:
        return self.at(self.any(count, generator))

    def clear(self, capacity: int) -> None:
        """Forget all, and keep so many from now on."""
        self.capacity, self.rows, self.count, self.next = capacity, {}, 0, 0

    def state_dict(self) -> dict[str, Any]:
        rows = {name: x[: self.count] for name, x in self.rows.items()}
        return {"rows": rows, "count": self.count, "next": self.next, "capacity": self.capacity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = {name: x.clone().to(self.device) for name, x in state["rows"].items()}
        self.count, self.next, self.capacity = state["count"], state["next"], state["capacity"]
