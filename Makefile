# For people on a fresh machine: `make demo`, `make test`. `make` alone lists what there is.
# Everything is installed into $(VENV), at the versions of constraints.txt; nothing else is touched.

PYTHON ?= python3
VENV ?= .venv
# Where `make gpu` puts its record.
OUT ?= docs/records
# More for pytest: make test PYTEST_ARGS='-k gru'
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# The build tools are in the environment already, so no build fetches its own, unpinned.
PIP_SELF := $(PIP) --no-build-isolation --editable
# The last cuDNN 8, beside the cuDNN of constraints.txt, which can name one version only.
CUDNN8 := nvidia-cudnn-cu12==8.9.7.29
# Chainer has a setup.py of its time, for which the setuptools of constraints.txt is too new.
CHAINER := chainer==7.8.1
CHAINER_SETUPTOOLS := setuptools==81.0.0
CHAINER_PIP := $(VENV)/chainer/bin/python -m pip --disable-pip-version-check install --quiet
INPUTS := pyproject.toml constraints.txt cudnn_compat/_version.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint gpu bench cudnn8 chainer browser clean

help:
	@echo "make demo   install into $(VENV), train a small model with a program for the old API"
	@echo "make test   install the tools too, then lint, type-check and run all tests"
	@echo "make lint   the checks of 'make test' without the tests"
	@echo "make release VERSION=X.Y.Z  make its wheel and snapshot (docs/releasing.md)"
	@echo "make bench  time the NumPy engine against PyTorch, and old calls against new ones"
	@echo "make cudnn8 unpack cuDNN 8.9 into $(VENV)/cudnn8 (1 GB), so that its tests are not skipped"
	@echo "make chainer install Chainer 7.8.1 into $(VENV)/chainer, so that its tests are not skipped"
	@echo "make browser install Chromium (Debian, as root), so that the tests of pages are not skipped"
	@echo "make gpu    run all checks with $(PYTHON) as it is, write a dated record to $(OUT)"
	@echo "make clean  remove $(VENV), caches and builds"

demo: $(VENV)/.demo
	$(BIN)/cudnn-compat run examples/char_model.py

test: lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.cudnn
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/cudnn-compat bench --engine numpy --parts grid
	$(BIN)/python benchmarks/legacy_overhead.py

# On a GPU machine, Python and its CUDA packages are usually there and must stay as they are. A part
# of it: make gpu GPU_ARGS='--parts golden,bench'
gpu:
	$(PYTHON) scripts/gpu_record.py --out $(OUT) $(GPU_ARGS) -- $(PYTEST_ARGS)

# Unpacked only, without what it depends on: enough for headers, descriptors and errors.
cudnn8: $(VENV)/cudnn8/nvidia/cudnn/include/cudnn.h

# Beside the main environment and not in it: what Chainer asks for is old.
chainer: $(VENV)/chainer/.installed

# Debian's, with apt (120 MB): PyPI has drivers of browsers, and no browser.
browser:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then \
	    echo "chromium and chromedriver are here"; \
	elif ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
	    echo "install chromium and chromedriver by other means: this needs apt-get, and root"; \
	elif ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive \
	    apt-get -q install -y --no-install-recommends chromium chromium-driver; } >/dev/null; then \
	    echo "apt-get could not install chromium, so the tests of pages will be skipped"; \
	fi

# Writes nothing unless the version may make the changes that were made since the last release.
.PHONY: release
release: $(VENV)/.dev
	@test -n '$(VERSION)' || { echo 'which version? make release VERSION=X.Y.Z'; exit 2; }
	$(BIN)/python scripts/release.py '$(VERSION)'

clean:
	rm -rf $(VENV) .nox build dist .pytest_cache .hypothesis .benchmarks .mypy_cache .ruff_cache
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp says that its part was installed since the files it depends on last changed.
$(VENV)/.demo: $(VENV)/.build
	$(PIP_SELF) '.[cli]'
	@touch $@

$(VENV)/.dev: $(VENV)/.build
	@echo "installing PyTorch and the tools, which takes minutes the first time ..."
	$(PIP_SELF) '.[test,peers,cli,migrate,plots]' --group dev
	@touch $@

# The real cuDNN runs without a GPU as far as descriptors and errors. Two wheels of it would write to
# one folder: where PyTorch brought the other one, the tests use that one.
$(VENV)/.cudnn: $(VENV)/.dev
	@if $(BIN)/python -m pip --quiet show nvidia-cudnn-cu13 2>/dev/null; then \
	    echo "nvidia-cudnn-cu13 is here already, so nvidia-cudnn-cu12 is not installed"; \
	else \
	    echo "installing cuDNN (700 MB) and what reads its headers ..."; \
	    $(PIP) --no-deps --group cudnn; \
	fi
	@touch $@

$(VENV)/cudnn8/nvidia/cudnn/include/cudnn.h: | $(BIN)/python
	@echo "unpacking cuDNN 8.9 (700 MB) ..."
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps \
	    --target $(VENV)/cudnn8 --upgrade '$(CUDNN8)'

$(VENV)/chainer/.installed: constraints.txt | $(BIN)/python
	@echo "installing Chainer into $(VENV)/chainer ..."
	$(PYTHON) -m venv $(VENV)/chainer
	$(CHAINER_PIP) '$(CHAINER_SETUPTOOLS)'
	$(CHAINER_PIP) --constraint constraints.txt wheel
	$(CHAINER_PIP) --constraint constraints.txt --no-build-isolation '$(CHAINER)' \
	    click packaging rich
	@touch $@

$(VENV)/.build: $(INPUTS) | $(BIN)/python
	$(PIP) --upgrade pip
	$(PIP) --group build
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    f"cudnn_compat needs Python 3.11 or newer, $(PYTHON) is {sys.version.split()[0]}: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
