"""Models that run in this process: loading, likelihoods, generation and classification."""
