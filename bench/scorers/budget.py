"""Budgets of requests and tokens, which endpoints in several processes can share."""

import copy
from multiprocessing.sharedctypes import RawArray
from typing import NoReturn, Self

from bench.config import Limits
from bench.core.errors import BudgetSpent


class Budget:
    """Counts requests and tokens, up to a limit of each.

    The models of a report have a process each, and share the budget of their study: we count in
    shared memory, with a place for each of `places` processes, so that no process waits for a
    killed one. Messages name the `owner`, for example "the study".
    """

    def __init__(
        self, requests: int | None, tokens: int | None, owner: str = "", places: int = 1
    ) -> None:
        self.requests, self.tokens, self.owner = requests, tokens, owner
        # Requests and tokens of each place in turn.
        self._counts, self._place = RawArray("q", 2 * places), 0

    def at(self, place: int) -> Self:
        """Return the same budget, counted at another place."""
        other = copy.copy(self)
        other._place = place
        return other

    def take_request(self) -> None:
        """Count a request before sending it."""
        # Count before the check, so that two processes cannot both take the last request.
        self._counts[2 * self._place] += 1
        requests, tokens = sum(self._counts[::2]), sum(self._counts[1::2])
        if self.requests is not None and requests > self.requests:
            self._end(self.requests, "requests")
        if self.tokens is not None and tokens >= self.tokens:
            self._end(self.tokens, "tokens")

    def add_tokens(self, n: int) -> None:
        """Count tokens of a server's answer; they may exceed the budget."""
        self._counts[2 * self._place + 1] += n

    def _end(self, most: int, name: str) -> NoReturn:
        self._counts[2 * self._place] -= 1
        option = f"give more by --budget-{name}"
        if self.owner:
            name, option = f"{name} of {self.owner}", "give more in its limits"
        raise BudgetSpent(f"the budget of {most:,} {name} is spent; {option}")


def budgets_of(limits: Limits, owner: str = "", places: int = 1) -> tuple[Budget, ...]:
    """Return the shared budgets of limits, otherwise a new budget."""
    numbers = limits.budget_requests, limits.budget_tokens
    if limits.budgets or numbers == (None, None):
        return limits.budgets
    return (Budget(*numbers, owner, places),)
