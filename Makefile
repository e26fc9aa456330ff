# The commands of CONTRIBUTING.md; those after `install` run in .venv where that is, otherwise in the active environment.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
.PHONY: install test lint slow docs

install:
	python3 -m venv .venv
	.venv/bin/pip install -c .ci/constraints.txt -e ".[test,docs]"

test:
	pytest tests -n auto --dist loadfile

lint:
	.ci/lint

slow:
	.ci/slow

docs:
	.ci/docs
