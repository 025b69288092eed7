"""Checkpoint policies: the states that a rollout keeps for its backward pass.

The gradient is the same to the bit under every policy: a state that was not kept is recomputed by the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple, Protocol

from ..errors import InputError


class Checkpoints(Protocol):
    """Protocol of checkpoint policies."""

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        """Return (block, snapshots): steps per block, and the maximum number of block start states kept at a time.

        If `snapshots` is at least the number of blocks, all start states are kept. Otherwise a binomial schedule selects
        the start states to keep and the blocks to recompute.

        Args:
          steps: Number of steps of the rollout.
          state_bytes: Size of the states of the whole batch at one step, bytes.
        """
        ...


class CheckpointPlan(NamedTuple):
    """Checkpoint plan of a rollout.

    Attributes:
      block: Steps per block.
      blocks: Number of blocks.
      snapshots: Maximum number of block start states kept at a time.
    """

    block: int
    blocks: int
    snapshots: int

    @property
    def keeps_all(self) -> bool:
        """True if the first state of every block is kept."""
        return self.snapshots >= self.blocks


def plan_of(checkpoints: Checkpoints, steps: int, state_bytes: int) -> CheckpointPlan:
    """Return the plan of a policy for a number of steps and the size of a batch of states in bytes."""
    block, snapshots = checkpoints.plan(steps, state_bytes)
    return CheckpointPlan(block, -(-steps // block), snapshots)


@dataclass(frozen=True)
class EveryStep:
    """Policy that keeps every state: nothing is recomputed, and `traj.q`, `traj.v` can be read."""

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        return 1, steps


@dataclass(frozen=True)
class EveryKth:
    """Policy that keeps every k-th state.

    It needs 1/k of the memory, and recomputes k - 1 of k steps in the backward pass.

    Attributes:
      k: Steps between two states that are kept.
    """

    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise InputError(f"EveryKth keeps a state every k >= 1 steps, not {self.k!r}")

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        return self.k, -(-steps // self.k)


@dataclass(frozen=True)
class Binomial:
    """Policy of binomial checkpointing within a memory limit  (theory 8.2).

    Attributes:
      memory: Limit, a text such as "64MB" or a number of bytes.
    """

    memory: str | int

    def __post_init__(self) -> None:
        parse_bytes(self.memory)

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        states = parse_bytes(self.memory) // max(state_bytes, 1)
        if states < 3:
            raise InputError(
                f"memory={self.memory!r} holds {states} states of {state_bytes} bytes; at least 3 are needed"
            )
        if states > steps:
            return 1, steps
        block = max(1, states // 2 - 1)
        return block, states - block - 1


def parse_bytes(memory: str | int) -> int:
    """Return the number of bytes of "64MB", "1.5 GB", "64MiB", "4096" or a number."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([kMG]?)(i?)B?\s*", str(memory), re.IGNORECASE)
    if match is None:
        raise InputError(f"memory is a number of bytes or a text like '64MB', not {memory!r}")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** ("", "K", "M", "G").index(match[2].upper()))


def split(length: int, snapshots: int) -> int:
    """Return the number of blocks to advance before the next snapshot; one of `snapshots` slots is in use  (theory 8.3)."""
    if snapshots <= 1:
        return length - 1
    r = 1
    while comb(snapshots + r, snapshots) < length:
        r += 1
    least = max(length - comb(snapshots + r - 1, snapshots - 1), comb(snapshots + r - 2, snapshots))
    return max(1, min(least, comb(snapshots + r - 1, snapshots), length - 1))


def forward_snapshots(blocks: int, snapshots: int) -> list[int]:
    """Return the blocks whose start state the forward pass keeps, in order; the first is always 0."""
    kept = [0]
    while len(kept) < snapshots and blocks - kept[-1] > 1:
        kept.append(kept[-1] + split(blocks - kept[-1], snapshots - len(kept) + 1))
    return kept


def reverse(
    blocks: int,
    snapshots: int,
    kept: dict[int, Any],
    advance: Callable[[Any, int, int], Any],
    block_vjp: Callable[[Any, int], None],
) -> None:
    """Visit all blocks from the last to the first.

    Args:
      blocks: Number of blocks.
      snapshots: Maximum number of states kept at a time.
      kept: Start states by block.
      advance: advance(state, a, b) returns the state at block b from that at block a.
      block_vjp: block_vjp(state, b) differentiates block b.
    """
    stack, end = sorted(kept), blocks
    while stack:
        start = stack[-1]
        if end - start == 1:
            block_vjp(kept[start], start)
            kept.pop(stack.pop())
            end = start
        elif len(stack) >= snapshots:
            block_vjp(advance(kept[start], start, end - 1), end - 1)
            end -= 1
        else:
            ahead = start + split(end - start, snapshots - len(stack) + 1)
            kept[ahead] = advance(kept[start], start, ahead)
            stack.append(ahead)


def check_checkpoints(given: Any) -> None:
    """Raise InputError if an argument is not a checkpoint policy."""
    if isinstance(given, type) or not hasattr(given, "plan"):
        raise InputError("checkpoints is EveryStep(), EveryKth(k) or Binomial(memory=...)")
