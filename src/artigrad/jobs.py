"""Work that many machines share, by Ray: one function for each of many jobs. Seeds of a training, starts of a task or of
`ag.fit`, members of a population."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .errors import InputError, is_whole, need

Job = TypeVar("Job")
Result = TypeVar("Result")


def cluster(address: str | None = None) -> Any:
    """Ray, at work: on the cluster that this process is part of already, on that at an address, or on one of this machine."""
    need("ray", "many machines are used through Ray", "ray")
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
    """[work(job) for job in jobs], side by side on a Ray cluster, `cores` for each; results are in the order of jobs.

    address: as in `ray.init`; one of this machine is started where there is none. A job whose worker dies is done again, up to
    `retries` times. An error of a job is raised here, says which job it was, and ends the others. watch: called with the
    number of jobs that are done, and of all, after each. What work and its jobs hold is sent to the workers.
    """
    if not callable(work):
        raise InputError(f"work is a function of one job, not {work!r}")
    for name, number, least in (("cores", cores, 1), ("retries", retries, 0)):
        if not is_whole(number, least):
            raise InputError(f"{name} is a whole number, at least {least}, not {number!r}")
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
