"""Budgets of requests and tokens, which the endpoints of a study share."""

from threading import Lock
from typing import NoReturn

from bench.config import Limits
from bench.core.errors import BudgetSpent


class Budget:
    """Counts requests and tokens, up to a limit of each.

    Messages name the `owner`, for example "the study".
    """

    def __init__(self, requests: int | None, tokens: int | None, owner: str = "") -> None:
        self.requests, self.tokens, self.owner = requests, tokens, owner
        self._requests_used = self._tokens_used = 0
        self._lock = Lock()

    def take_request(self) -> None:
        """Count a request before sending it."""
        with self._lock:
            if self.requests is not None and self._requests_used >= self.requests:
                self._end(self.requests, "requests")
            if self.tokens is not None and self._tokens_used >= self.tokens:
                self._end(self.tokens, "tokens")
            self._requests_used += 1

    def add_tokens(self, n: int) -> None:
        """Count tokens of a server's answer; they may exceed the budget."""
        with self._lock:
            self._tokens_used += n

    def _end(self, most: int, name: str) -> NoReturn:
        option = f"give more by --budget-{name}"
        if self.owner:
            name, option = f"{name} of {self.owner}", "give more in its limits"
        raise BudgetSpent(f"the budget of {most:,} {name} is spent; {option}")


def budgets_of(limits: Limits, owner: str = "") -> tuple[Budget, ...]:
    """Return the shared budgets of limits, otherwise a new budget."""
    numbers = limits.budget_requests, limits.budget_tokens
    if limits.budgets or numbers == (None, None):
        return limits.budgets
    return (Budget(*numbers, owner),)
