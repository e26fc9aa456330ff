"""The numbers of CBBQ's release, category by category, to set those of a folder beside."""

from collections.abc import Iterable
from typing import NamedTuple


class Numbers(NamedTuple):
    """Templates by condition and polarity (ambiguous first, negative first), questions by condition, and how many of
    these are distinct in context, question and options."""

    templates: tuple[int, ...]
    questions: tuple[int, ...]
    distinct: int

    def __str__(self) -> str:
        a, b, c, d = self.templates
        return (
            f"{sum(self.templates):,} templates ({a:,} + {b:,} ambiguous, {c:,} + {d:,} disambiguous), "
            f"{sum(self.questions):,} questions ({' + '.join(f'{n:,}' for n in self.questions)}), {self.distinct:,} distinct"
        )


# Counted in the authors' repository at commit 95eaf2e of August 2023; their paper and README print other numbers.
RELEASED = {
    "SES": Numbers((24, 24, 24, 24), (3960, 3960), 7920),
    "age": Numbers((65, 68, 65, 68), (7400, 7400), 14172),
    "disability": Numbers((39, 38, 38, 37), (1588, 1556), 3112),
    "disease": Numbers((74, 73, 74, 73), (586, 586), 1172),
    "educational_qualification": Numbers((67, 67, 67, 67), (1392, 1392), 2734),
    "ethnicity": Numbers((29, 29, 29, 29), (980, 980), 1942),
    "gender": Numbers((114, 116, 122, 121), (1534, 1838), 3222),
    "household_registration": Numbers((43, 42, 43, 42), (8700, 8700), 17200),
    "nationality": Numbers((34, 34, 34, 34), (11988, 11986), 20566),
    "physical_appearance": Numbers((28, 28, 28, 28), (1856, 1856), 3456),
    "race": Numbers((48, 48, 48, 48), (13528, 13528), 25200),
    "region": Numbers((74, 74, 74, 74), (2176, 2176), 4342),
    "religion": Numbers((92, 91, 92, 92), (2944, 2956), 5900),
    "sexual_orientation": Numbers((35, 35, 35, 35), (560, 560), 1104),
}


def total(numbers: Iterable[Numbers]) -> Numbers:
    """The sums over categories, which have no text in common."""
    templates, questions, distinct = zip(*numbers, strict=True)
    return Numbers(
        tuple(map(sum, zip(*templates, strict=True))),
        tuple(map(sum, zip(*questions, strict=True))),
        sum(distinct),
    )
