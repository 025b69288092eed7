"""Replay buffer of transitions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class ReplayBuffer:
    """The last `capacity` transitions, as rows of named tensors. Memory grows as rows are added.

    Attributes:
      rows: Tensors (n, ...) by name.
      count: Number of stored transitions.
    """

    def __init__(self, capacity: int, device: torch.device):
        self.capacity, self.device = capacity, device
        self.rows: dict[str, Tensor] = {}
        self.count, self.next = 0, 0

    def add(self, **new: Tensor) -> None:
        """Add rows (n, ...) by name, with the same names at each call. The oldest rows are overwritten."""
        n = len(next(iter(new.values())))
        allocated = min(self.capacity, max(2 * self.count, self.next + n, 1024))
        for name, x in new.items():
            if name not in self.rows or (len(self.rows[name]) < allocated and self.next + n > len(self.rows[name])):
                grown = torch.zeros(allocated, *x.shape[1:], dtype=x.dtype, device=self.device)
                if name in self.rows:
                    grown[: self.count] = self.rows[name][: self.count]
                self.rows[name] = grown
        size = len(self.rows[next(iter(new))])
        at = (self.next + torch.arange(n, device=self.device)) % size
        for name, x in new.items():
            self.rows[name][at] = x.detach()
        self.next = (self.next + n) % self.capacity
        self.count = min(self.count + n, size)

    def at(self, indices: Tensor) -> dict[str, Tensor]:
        """Return the rows with these indices."""
        return {name: x[indices] for name, x in self.rows.items()}

    def random_indices(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random indices of rows, drawn with replacement."""
        return torch.randint(self.count, (count,), generator=generator, device=self.device)

    def sample(self, count: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return random rows, drawn with replacement."""
        return self.at(self.random_indices(count, generator))

    def clear(self, capacity: int) -> None:
        """Remove all rows and set a new capacity."""
        self.capacity, self.rows, self.count, self.next = capacity, {}, 0, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        rows = {name: x[: self.count] for name, x in self.rows.items()}
        return {"rows": rows, "count": self.count, "next": self.next, "capacity": self.capacity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        self.rows = {name: x.clone().to(self.device) for name, x in state["rows"].items()}
        self.count, self.next, self.capacity = state["count"], state["next"], state["capacity"]
