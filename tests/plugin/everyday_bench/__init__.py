"""Everyday: a dozen multiple-choice questions in English, in the form of BBQ."""

from pathlib import Path

from bench.benchmarks import Benchmark

BENCHMARK = Benchmark.of_package("everyday", "everyday_bench", Path(__file__).parent)
