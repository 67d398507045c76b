# Every target sets up what it needs; `make demo` and `make test` are all a newcomer has to know.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PACKAGES := $(VENV)/.packages

.PHONY: setup cores demo test pytest pure again test-long long search long-pure again-long test-fast lint bench fuzz compliance tables paper systems scale swarm clean
setup: $(STAMP)
$(STAMP): $(PACKAGES)
	$(BIN)/python -m tools.cores
	touch $(STAMP)

$(PACKAGES): pyproject.toml setup.py
	$(PYTHON) -c 'import sys; sys.exit("mrcfabric needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@echo "setup: installing what pyproject.toml names into $(VENV); this takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(PACKAGES)

# The modules on the way of a packet as extension modules, made from the same sources; without a C compiler nothing is made,
# and the sources run as pure Python. Says in one line which it is.
cores: setup
	$(BIN)/python -m tools.cores

demo: setup
	$(BIN)/mrcfabric demo

# Both at once: lint leaves a core idle, and the tests take all that they get. In a fresh clone lint needs no compiled
# cores, and runs while they are made.
test: $(PACKAGES)
	$(MAKE) --jobs=2 lint pytest

# Tests that change a core from outside (`pure`) need cores in pure Python, all others take those that run. Every worker
# reads all files that it is given, so for the few pure ones it is given those alone that have some.
PURE := $(shell grep -rl --include='test_*.py' 'mark\.pure' tests)
pytest: setup
	$(BIN)/pytest -n auto --dist worksteal -m "not long and not pure"
	$(MAKE) pure

pure: setup
	MRCFABRIC_CORES=python $(BIN)/pytest -n auto --dist worksteal -m "pure and not long" $(PURE)

# For CI, after `make test` has failed: those few tests alone, and what was not reached. See tests/support/second_try.py.
again: setup
	$(MAKE) lint
	$(BIN)/python -m tests.support.second_try
	$(MAKE) pure

# Repetitions, soaks, many seeds, whole clusters: what `make test` shows once, at length; and properties, searched at random.
# All three parts run, whatever fails in one of them.
test-long: setup
	$(MAKE) --jobs=1 --keep-going long search long-pure

# As for PURE: to read the 900 files of all tests takes each worker longer than many of these parts.
LONG := $(sort $(shell grep -rlE --include='test_*.py' 'mark\.long|corners' tests))
SEARCHED := $(sort $(shell grep -rl --include='test_*.py' 'hypothesis' tests))
long: setup
	$(BIN)/pytest -n auto --dist worksteal -m "long and not pure" $(LONG)

search: setup
	HYPOTHESIS_PROFILE=search $(BIN)/pytest -n auto --dist worksteal -m "hypothesis and not long and not pure" $(SEARCHED)

long-pure: setup
	MRCFABRIC_CORES=python $(BIN)/pytest -n auto --dist worksteal -m "long and pure" $(PURE)

# After `make test-long` has failed: those few tests alone. What a search has found is tried again, and fails again.
again-long: setup
	HYPOTHESIS_PROFILE=search $(BIN)/python -m tests.support.second_try

test-fast: setup
	$(BIN)/pytest -n auto --dist worksteal -m "not integration and not slow and not long" -q

lint: $(PACKAGES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: cores
	$(BIN)/python -m bench

# Inputs made to break the decoders and the cores, SECONDS for all targets together or for TARGET alone; see fuzz/.
SECONDS ?= 60
FUZZED  := $(VENV)/.fuzz-installed
$(FUZZED): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	touch $(FUZZED)

fuzz: $(FUZZED)
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(if $(TARGET),--target $(TARGET))

# For the four targets below: JOBS=N runs N at a time, DASK=ADDRESS uses the workers of a Dask cluster.
POOL := $(if $(JOBS),--jobs $(JOBS)) $(if $(DASK),--dask $(DASK))

# Random fabrics, workloads and faults in virtual time, every instant checked: SEEDS of each series, or SEED alone; see
# swarm/. SERIES=mrc or systems: of that one only.
SEEDS ?= 100
# Fabrics that route take a hundred seconds of fabric time each.
ROUTED ?= 10
swarm: setup
	$(BIN)/python -m swarm $(POOL) $(if $(SERIES),--series $(SERIES)) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
	$(if $(SERIES)$(SEED),,$(BIN)/python -m swarm.credits --seeds $(SEEDS))
	$(if $(SERIES)$(SEED),,$(BIN)/python -m swarm.routing --seeds $(ROUTED))

# docs/SPEC_MAP.md: which section of which specification is followed where, and which test shows it.
compliance: setup
	$(BIN)/python -m tests.checks.spec_map

# Golden tables and comparisons in virtual time: rewrites studies/tables and docs/COMPARISON.md; with CHECK=1 it compares.
tables: setup
	$(BIN)/python -m studies $(POOL) $(if $(CHECK),--check,--write)

# docs/PAPER.md: the experiments of the paper, run in virtual time; ONLY="NAME NAME" runs these and keeps all other rows.
paper: setup
	$(BIN)/python -m docs.generate_paper $(POOL) $(if $(ONLY),--only $(ONLY)) > docs/PAPER.md.new && mv docs/PAPER.md.new docs/PAPER.md

# docs/SYSTEMS.md: what each system must show, measured in virtual time.
systems: setup
	$(BIN)/python -m studies.systems $(POOL) --write

# docs/SCALE.md: at what scale MRC becomes indispensable. CHECK=1 compares with what is stored.
scale: setup
	$(BIN)/python -m studies.scale $(if $(CHECK),--check,--write)

clean:
	rm -rf $(VENV) mrcfabric/_cores .mypy_cache .ruff_cache .pytest_cache .hypothesis build out *.egg-info
