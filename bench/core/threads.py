"""Work in threads that end with this process, so that Ctrl-C does not wait for them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> Iterator[tuple[Item, Result]]:
    """Start to call a function on each item now; return pairs of item and result as they come.

    An exception of the function is raised here. The threads are daemons: a `ThreadPoolExecutor`
    waits for its threads at the end of the process.

    Examples:
        >>> sorted(in_threads(abs, [-1, -2], threads=2))
        [(-2, 2), (-1, 1)]
    """
    waiting, results = SimpleQueue[Item](), SimpleQueue[tuple[Item, Any, BaseException | None]]()
    for item in items:
        waiting.put(item)

    def work() -> None:
        with suppress(Empty):
            while True:
                item = waiting.get_nowait()
                try:
                    results.put((item, function(item), None))
                except BaseException as error:
                    results.put((item, None, error))

    for _ in range(min(threads, len(items))):
        threading.Thread(target=work, daemon=True).start()
    return _results(results, len(items))


def _results(
    results: "SimpleQueue[tuple[Item, Any, BaseException | None]]", n: int
) -> Iterator[tuple[Item, Any]]:
    for _ in range(n):
        item, result, error = results.get()
        if error:
            raise error
        yield item, result
