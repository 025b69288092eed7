"""Independent jobs distributed over the workers of a Ray cluster: seeds of a training, initial guesses of a task or of
`ag.fit`, members of a population."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .errors import InputError, is_whole, need

Job = TypeVar("Job")
Result = TypeVar("Result")


def cluster(address: str | None = None) -> Any:
    """Return the module `ray`, connected to a cluster: the one of this process, the one at `address`, or a new one on this
    machine."""
    need("ray", "distributed jobs need Ray", "ray")
    import ray

    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False, log_to_driver=False)
    return ray


def over_workers(
    work: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    address: str | None = None,
    cores: int = 1,
    retries: int = 3,
    watch: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Return [work(job) for job in jobs], computed in parallel on a Ray cluster.

    The error of a job is raised with a note that names the job, and cancels the others.

    Args:
      work: Function of one job. It and the jobs are sent to the workers.
      jobs: Jobs.
      address: Address of the cluster, as for `ray.init`; None: a new one on this machine, unless this process is part of
        one.
      cores: Cores per job.
      retries: Number of times that a job is repeated if its worker dies.
      watch: Called with the number of finished jobs and of all jobs after each.

    Returns:
      Results in the order of the jobs.
    """
    if not callable(work):
        raise InputError(f"work is a function of one job, not {work!r}")
    for name, number, least in (("cores", cores, 1), ("retries", retries, 0)):
        if not is_whole(number, least):
            raise InputError(f"{name} is an integer of at least {least}, not {number!r}")
    ray, todo = cluster(address), list(jobs)
    task = ray.remote(num_cpus=cores, max_retries=retries)(work)
    places = {task.remote(job): k for k, job in enumerate(todo)}
    results: list[Any] = [None] * len(todo)
    waiting = list(places)
    while waiting:
        [ready], waiting = ray.wait(waiting, num_returns=1)
        k = places[ready]
        try:
            results[k] = ray.get(ready)
        except BaseException as problem:
            for other in waiting:
                ray.cancel(other, force=True)
            problem.add_note(f"in job {k} of {len(todo)}: {todo[k]!r:.200}")
            raise
        if watch is not None:
            watch(len(todo) - len(waiting), len(todo))
    return results
