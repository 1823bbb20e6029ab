# Every target creates .venv and installs what it needs; nothing has to be there but Python >= 3.11 and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
LOCKED := pyproject.toml constraints.txt

.PHONY: help demo test test-lowest check format docs bench race fuzz soak release-check mutants paper paper-quick clean

help:
	@echo "make demo    explain a model of the penguins that come with dsage; writes demo-output/report.html"
	@echo "make test    run the test suite; make test-lowest: with the lowest allowed versions"
	@echo "make check   lint, types and import layers"
	@echo "make format  rewrite the code in the project's style"
	@echo "make docs    run the code of the documentation, and build it into docs/_build/html"
	@echo "make bench   run the benchmarks and print their tables"
	@echo "make race    race other packages, each in an environment of its own, in hours"
	@echo "make fuzz    read damaged files of every format, and count crashes, raw errors and hangs"
	@echo "make soak    explain 500 times, kill runs and workers, fill the disk, and compare the results"
	@echo "make release-check  build the package, and test the wheel in a fresh environment"
	@echo "make mutants change the code at random places, and count the changes that the tests notice"
	@echo "make paper   re-create every experiment of the paper, in hours; make paper-quick: in minutes"
	@echo "make clean   remove .venv and everything that was built"

demo: $(VENV)/.cli
	@mkdir -p demo-output
	$(BIN)/dsage demo --report demo-output/report.html

# One thread a process: those of several processes would wait for each other.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses 2 --dist worksteal

# Another environment, with the lowest version of each dependency that pyproject.toml allows.
test-lowest:
	"$(PYTHON)" -m venv .venv-lowest
	"$(PYTHON)" tools/lowest_versions.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/lowest.txt --editable ".[dev]"
	# Old libraries warn of newer ones.
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest --numprocesses 2 --dist worksteal -o filterwarnings=default

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The code of the README and of the pages first, which prints what they show; then the gallery and
# the pages.
docs: $(VENV)/.dev $(VENV)/.docs
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --quiet --numprocesses 2 docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.separation
	$(BIN)/python -m benchmarks.structure_speed
	$(BIN)/python -m benchmarks.structure_quality
	$(BIN)/python -m benchmarks.structure_last_check
	# Skipped without a folder of bnlearn's networks: make bench NETWORKS=folder.
	$(BIN)/python -m benchmarks.structure_networks $(NETWORKS)
	# Skipped without causal-learn and lingam.
	$(BIN)/python -m benchmarks.structure_learners
	$(BIN)/python -m benchmarks.structure_real
	$(BIN)/python -m benchmarks.stability
	$(BIN)/python -m benchmarks.samplers
	$(BIN)/python -m benchmarks.samplers_quality
	$(BIN)/python -m benchmarks.drawing_share
	$(BIN)/python -m benchmarks.pipelines
	$(BIN)/python -m benchmarks.defaults
	$(BIN)/python -m benchmarks.budgets
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.engine_workloads
	$(BIN)/python -m benchmarks.losses
	$(BIN)/python -m benchmarks.draw_need
	$(BIN)/python -m benchmarks.engine_coverage
	$(BIN)/python -m benchmarks.default_coverage
	$(BIN)/python -m benchmarks.causal
	$(BIN)/python -m benchmarks.engine_design
	$(BIN)/python -m benchmarks.engine_orderings
	$(BIN)/python -m benchmarks.folds
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.jobs
	$(BIN)/python -m benchmarks.helpers
	$(BIN)/python -m benchmarks.comparison
	$(BIN)/python -m benchmarks.convergence

# Makes the environments in .race; runs that are kept in benchmarks/results/race.csv are not repeated.
race: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.race --growth
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.race.structure

# Damaged files of every format: 2,000 mutants each, or make fuzz MUTANTS=200.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tools.fuzz $(if $(MUTANTS),--mutants $(MUTANTS))

# Long runs, kills, full disks, dead workers.
soak: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tools/soak.py

# Build into dist, and test the wheel in a fresh environment.
release-check: $(VENV)/.dev
	$(BIN)/python tools/release_check.py

mutants: $(VENV)/.mutants
	$(BIN)/python tools/mutants.py

# All experiments of the paper; an interrupted run continues.
paper: $(VENV)/.paper
	$(BIN)/python -m experiments

paper-quick: $(VENV)/.paper
	$(BIN)/python -m experiments --quick

clean:
	rm -rf $(VENV) .venv-lowest .race .mutants build dist docs/_build docs/gallery demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dsage needs Python 3.11 or newer; '$(PYTHON)' is not. Run: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# One stamp a set of dependencies: .cli, .dev and .docs install the extra of that name.
$(VENV)/.%: $(VENV)/bin/python $(LOCKED)
	$(PIP) --editable ".[$*]"
	@touch $@
