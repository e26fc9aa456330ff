"""Results in the formats of other programs: Every Eval Ever."""
