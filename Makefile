# The commands of docs/development.md. PYTHON is an environment with the `test` extra.
PYTHON ?= dev/bin/python
.PHONY: build smoke test lint docs site

build: ## the native parts, into the tree: only what changed
	cmake -S . -B build -G Ninja -DPython_EXECUTABLE=$(abspath $(PYTHON)) >/dev/null
	cmake --build build && cmake --install build --prefix . >/dev/null

smoke: ## a minute over all packages
	$(PYTHON) -m pytest -q -m smoke

test: ## the whole suite
	$(PYTHON) -m pytest -n 2

lint: ## what CI holds of style and types
	$(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check . && $(PYTHON) -m mypy

docs: ## write the generated files again
	$(PYTHON) docs/check.py --write

site: ## the documentation, into build/site (needs the extra `docs`)
	$(PYTHON) -m mkdocs build --strict
