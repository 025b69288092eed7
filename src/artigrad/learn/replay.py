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

    def sample(self, count: int, generator: torch.Generator) -> dict[str, Tensor]:
        at = torch.randint(self.count, (count,), generator=generator, device=self.device)
        return {name: x[at] for name, x in self.rows.items()}

    def state_dict(self) -> dict[str, Any]:
        rows = {name: x[: self.count] for name, x in self.rows.items()}
        return {"rows": rows, "count": self.count, "next": self.next}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = {name: x.clone().to(self.device) for name, x in state["rows"].items()}
        self.count, self.next = state["count"], state["next"]
