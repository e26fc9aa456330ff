"""Budgets of requests and tokens, which endpoints in several processes can share."""

import copy
from multiprocessing.sharedctypes import RawArray
from typing import Self

from bench.config import Limits
from bench.core.errors import BudgetSpent

COUNTED = ("requests", "tokens")


class Budget:
    """Counts what endpoints are sent and what they read and write, up to a limit of each.

    A run's model and judge share one. The models of a report, each asked in a process of its own,
    share a study's: it counts in shared memory, where each process has a place to which it alone
    writes, so that none has to wait for another one or for one that was killed.

    Args:
        requests, tokens: the most of each; None for no limit.
        owner: who has the budget, for messages: "the study" for example.
        places: the number of processes that count.
    """

    def __init__(
        self, requests: int | None, tokens: int | None, owner: str = "", places: int = 1
    ) -> None:
        self.most, self.owner = (requests, tokens), owner
        self._counts, self._place = RawArray("q", len(COUNTED) * places), 0

    def at(self, place: int) -> Self:
        """Return the same budget, counted at another place."""
        other = copy.copy(self)
        other._place = place
        return other

    def take_request(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetSpent: it would be one too many, or the tokens are used up.
        """
        self._add("requests", 1)
        requests, tokens = (sum(self._counts[k :: len(COUNTED)]) for k in range(len(COUNTED)))
        most_requests, most_tokens = self.most
        if most_requests is not None and requests > most_requests:
            self._add("requests", -1)
            raise BudgetSpent(self._is_spent(most_requests, "requests"))
        if most_tokens is not None and tokens >= most_tokens:
            self._add("requests", -1)
            raise BudgetSpent(self._is_spent(most_tokens, "tokens"))

    def add_tokens(self, n: int) -> None:
        """Count tokens that a server read or wrote; they may exceed the budget."""
        self._add("tokens", n)

    def _add(self, name: str, n: int) -> None:
        self._counts[len(COUNTED) * self._place + COUNTED.index(name)] += n

    def _is_spent(self, most: int, name: str) -> str:
        if self.owner:
            return (
                f"the budget of {most:,} {name} of {self.owner} is spent; give more in its limits"
            )
        return f"the budget of {most:,} {name} is spent; give more by --budget-{name}"


def budgets_of(limits: Limits, owner: str = "", places: int = 1) -> tuple[Budget, ...]:
    """Return the budgets that limits share, or else one for their own numbers."""
    numbers = limits.budget_requests, limits.budget_tokens
    if limits.budgets or numbers == (None, None):
        return limits.budgets
    return (Budget(*numbers, owner, places),)
