"""Budgets of requests, which the endpoints of a study share."""

from threading import Lock

from bench.config import Limits
from bench.core.errors import BudgetSpent


class Budget:
    """Counts requests up to a limit; messages name the `owner`, for example "the study"."""

    def __init__(self, requests: int, owner: str = "") -> None:
        self.requests, self.owner, self._used, self._lock = requests, owner, 0, Lock()

    def take_request(self) -> None:
        """Count a request before sending it."""
        with self._lock:
            if self._used >= self.requests:
                owner = f" of {self.owner}" if self.owner else ""
                problem = f"the budget of {self.requests:,} requests{owner} is spent"
                raise BudgetSpent(f"{problem}; give more by --budget-requests, or a study's limits")
            self._used += 1


def budgets_of(limits: Limits, owner: str = "") -> tuple[Budget, ...]:
    """Return the shared budgets of limits, otherwise a new budget."""
    if limits.budgets or limits.budget_requests is None:
        return limits.budgets
    return (Budget(limits.budget_requests, owner),)
