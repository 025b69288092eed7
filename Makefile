# `make demo` and `make test` need nothing but Python 3.11+ and a network: each builds .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lowest lint docs bench browser clean

demo: .venv/.demo
	$(BIN)/artigrad demo

test: .venv/.dev lint docs browser lowest
	$(BIN)/python -m pytest -n auto

# The viewer is tested in chromium. Where it cannot be installed those tests are skipped and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	&& { timeout 300 apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null 2>&1; } \
	|| echo "no chromium: the viewer is not tested in a browser (apt-get install chromium)"

# The lowest versions that pyproject.toml allows, in an environment of their own.
lowest: .venv-lowest/.ready
	.venv-lowest/bin/python tests/first_hour.py > .venv-lowest/first_hour.log || { cat .venv-lowest/first_hour.log; exit 1; }

.venv-lowest/.ready: pyproject.toml tests/lowest.txt | .venv/bin/python
	$(BIN)/python -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --requirement tests/lowest.txt --editable .
	touch $@

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Build the site into site/. A warning (a dead link, a page that no menu has) is an error; not --quiet, under which mkdocs does not
# count warnings. pip installs what it needs, and nothing else uses the network.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: .venv/.dev
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.contact
	$(BIN)/python -m benchmarks.frameworks
	$(BIN)/python -m benchmarks.envs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.tasks

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "artigrad needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[plot,view,optimize]'
	touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all,ray,robots]' --group dev
	touch $@ .venv/.demo

clean:
	rm -rf .venv .venv-lowest site results .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-results
