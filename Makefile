# Both `make run` and `make test` set up all they need, from a bare Python 3.11 or newer.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STEP := $(PYTHON) tools/step.py
STEPS := 4
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv installs in seconds what takes pip minutes; where it cannot (an index that only pip is told of), pip does.
install = sh -c '$(BIN)/uv pip install --python $(BIN)/python $(1) || $(PIP) install $(1)'
MINILM := packages/memorist-minilm
ADAPTERS := packages/memorist-adapters
WEIGHTS := $(MINILM)/dist/memorist_minilm-0.7.0-py3-none-any.whl
# Two more than there are cores: tests of crashes, servers and the page wait a good deal.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 2, 6))')
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header pyproject.toml \
	--find-links $(MINILM)/dist --no-emit-package memorist-minilm

.PHONY: run test lint format bench bench-memories bench-recall bench-context bench-ingest bench-scale bench-all bench-lists bench-server bench-hostile bench-import pictures prove dist prove-dist prove-image docs lock clean
.DELETE_ON_ERROR:

run: $(VENV)/core-ready  ## The server on its embedded default, e.g. ARGS="--port 8000"
	@$(BIN)/memorist serve $(ARGS)

test: STEPS := 5
test: $(VENV)/dev-ready $(VENV)/servers-ready  ## Every test, on SQLite and on real PostgreSQL servers
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m "not prove" -n $(WORKERS) --dist worksteal

lint: $(VENV)/dev-ready  ## Style, types, and which room may know which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(VENV)/dev-ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev-ready  ## Storage beside raw SQLite, extraction beside its labels, worker, tokens, agent
	$(BIN)/python -m benchmarks.storage
	$(BIN)/python -m benchmarks.tokens
	$(BIN)/python -m benchmarks.extraction
	$(BIN)/python -m benchmarks.worker
	$(BIN)/python -m benchmarks.middleware

bench-memories: $(VENV)/dev-ready  ## What the rules make of LoCoMo, e.g. ARGS="--show 40"
	$(BIN)/python -m benchmarks.memories $(ARGS)

bench-recall: $(VENV)/dev-ready  ## Recall quality and latency, e.g. ARGS="--only locomo --ablation"
	$(BIN)/python -m benchmarks.recall $(ARGS)

bench-context: $(VENV)/dev-ready  ## Evidence inside the window, what compression keeps, how long it takes
	$(BIN)/python -m benchmarks.context $(ARGS)
	$(BIN)/python -m benchmarks.compression
	$(BIN)/python -m benchmarks.windows

bench-ingest: $(VENV)/dev-ready  ## Messages a second from remember to all views, e.g. ARGS="--messages 2000"
	$(BIN)/python -m benchmarks.ingest $(ARGS)

bench-scale: $(VENV)/dev-ready  ## Recall as memories grow, e.g. ARGS=--million
	$(BIN)/python -m benchmarks.scale $(ARGS)

bench-all: $(VENV)/dev-ready  ## Appends, recall, server and ingest on both databases, each figure beside its aim; hours
	$(BIN)/python -m benchmarks.storage
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.server
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.scale --postgres --out bench-results/postgres

bench-lists: $(VENV)/dev-ready  ## What a page of each list costs, of 1,000 items and of 100,000, e.g. ARGS="--postgres URL"
	$(BIN)/python -m benchmarks.lists $(ARGS)

bench-server: $(VENV)/dev-ready  ## What the server holds, beside an empty handler, e.g. ARGS="--seconds 10"
	$(BIN)/python -m benchmarks.server $(ARGS)

bench-hostile: $(VENV)/dev-ready  ## What one user's hostile messages cost another, e.g. ARGS="--messages 200"
	$(BIN)/python -m benchmarks.hostile $(ARGS)

bench-import: $(VENV)/dev-ready  ## Imports beside the store's own append, and their memory, e.g. ARGS="--megabytes 1000"
	$(BIN)/python -m benchmarks.transfer $(ARGS)

pictures: $(VENV)/dev-ready  ## The pictures of the page in the docs and the recording of the demo, made anew
	$(BIN)/python -m benchmarks.demo_picture
	MEMORIST_PICTURES=1 $(BIN)/python -m pytest tests/page/test_every_view.py

prove-dist: $(VENV)/dev-ready  ## What `make dist` leaves, installed in an empty environment and run there
	bash .ci/dist

prove-image: $(VENV)/dev-ready  ## The Dockerfile's steps in a throw-away root, and its server; root on Linux
	bash .ci/image

prove: $(VENV)/dev-ready  ## Long runs: crashes, soaks, many examples
	MEMORIST_PROVE=1 $(BIN)/python -m pytest

dist: $(VENV)/dev-ready  ## Wheels and source distributions to install elsewhere; docs/install.md
	rm -rf dist
	$(BIN)/hatchling build -d $(CURDIR)/dist
	cd $(ADAPTERS) && $(CURDIR)/$(BIN)/hatchling build -d $(CURDIR)/dist
	cd $(MINILM) && $(CURDIR)/$(BIN)/hatchling build -t sdist -d $(CURDIR)/dist
	cp $(WEIGHTS) dist

docs: $(VENV)/docs-ready  ## The documentation as a site with search, in site/; every link is checked
	$(BIN)/python docs/site/build.py

lock: $(VENV)/dev-ready  ## Renew the locked development dependencies
	echo uv | $(COMPILE:pyproject.toml=-) -o requirements-uv.lock
	$(BIN)/uv pip install --require-hashes -r requirements-uv.lock
	$(COMPILE) --extra server --extra chat --extra postgres --extra pdf -o requirements.lock
	$(COMPILE) --extra dev -o requirements-dev.lock
	$(COMPILE) --extra docs -c requirements-dev.lock -o requirements-docs.lock

clean:
	rm -rf $(VENV) dist build site bench-results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf $(MINILM)/build $(MINILM)/dist

# Setting up shows each step: what it does, how long it takes about, and took.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Memorist needs Python 3.11 or newer"; exit 1; }
	@echo "Setting up in $(VENV), once: two to three minutes, some 250 MB to fetch (\`make test\`: 600 MB)."
	@$(STEP) 1/$(STEPS) "An environment of its own, and an installer" "10 s" -- sh -c '$(PYTHON) -m venv $(VENV) \
		|| { echo "no venv module: apt-get install python3-venv"; exit 1; } \
		&& $(PIP) install --quiet --require-hashes -r requirements-uv.lock'

# The weights: fetched by hash and converted in an environment that pip makes and throws away, and
# in place only when they are whole.
$(WEIGHTS): $(wildcard $(addprefix $(MINILM)/,*.py *.toml *.txt *.npz *.npy src/*/*.py)) | $(BIN)/python
	@$(STEP) 2/$(STEPS) "The weights of the local embedder, fetched by hash and converted" "2 minutes" -- \
		sh -c '$(BIN)/uv build --wheel -o $(MINILM)/build $(MINILM) || $(PIP) wheel --no-deps -w $(MINILM)/build ./$(MINILM)'
	@mkdir -p $(@D)
	@mv $(MINILM)/build/$(@F) $@
	@rm -rf $(MINILM)/build

$(VENV)/core-ready: requirements.lock pyproject.toml $(WEIGHTS) | $(BIN)/python
	@$(STEP) 3/$(STEPS) "The packages that it needs" "20 s" -- $(call install,--require-hashes -r requirements.lock)
	@$(STEP) 4/$(STEPS) "Memorist itself" "5 s" -- $(call install,--no-deps --force-reinstall $(WEIGHTS) -e .)
	@touch $@

$(VENV)/dev-ready: requirements-dev.lock pyproject.toml $(WEIGHTS) | $(BIN)/python
	@$(STEP) 3/$(STEPS) "The packages that it and its tests need" "30 s" -- \
		$(call install,--require-hashes -r requirements-dev.lock)
	@$(STEP) 4/$(STEPS) "Memorist itself" "5 s" -- \
		$(call install,--no-deps --force-reinstall --no-build-isolation $(WEIGHTS) -e . -e $(ADAPTERS))
	@touch $@ $(VENV)/core-ready

$(VENV)/docs-ready: requirements-docs.lock $(VENV)/core-ready
	@$(STEP) 5/5 "What builds the documentation" "5 s" -- $(call install,--require-hashes -r requirements-docs.lock)
	@touch $@

# For the tests alone; where this fails, those tests say why that need them.
$(VENV)/servers-ready: $(VENV)/dev-ready
	-@$(STEP) 5/5 "PostgreSQL, pgvector, PgBouncer and Chromium, as found or by apt-get" "10 s to 3 minutes" -- $(BIN)/python -c \
		'from tests.support import browser, pgbouncer, postgres; browser.chromium(); pgbouncer.program(); \
		[postgres.start_server(vector=v).close() for v in (True, False)]' && touch $@
