# RoboCache, from a fresh checkout: `make demo` and `make test` are all that a newcomer needs.
#
#   DATA=dir       the recording or point clouds for `make demo` (default: what it simulates)
#   DEPS=no        install nothing: no apt, no virtual environment; use PYTHON unchanged
#   PYTHON=python  makes the virtual environment, or with DEPS=no runs everything itself
#   LOCKED=yes     Python packages of build, lint and packages in the versions, and with the hashes, of
#                  requirements/locked
#   INSTALLER=uv   Python packages are installed by uv, in two fifths of the CPU time of pip; by pip if uv
#                  fails, since it does not read pip's settings
#   LINT=quick     of `make lint`: all except checks that take minutes
#   COMPILERS="gcc-11 clang-19"  of `make test-compilers` (default: see scripts/test_compilers.sh)
#   AGAINST=FILE   of `make bench`: fails if a case is slower than recorded;  RECORD=FILE  records
#   SECONDS=600    of `make fuzz`;  HOURS=1  of `make soak`;  MUTATIONS=100000  of `make fuzz-readers`
#   ARCHITECTURES="x86_64 aarch64"  of `make packages` (default: this machine's)
#   AARCH64_CUDA=OFF  of `make packages`: 64-bit ARM without CUDA
#   CUDA_ARCH=90   builds the CUDA backend for this one GPU architecture (default: this machine's GPU;
#                  without a GPU, the CPU only)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # each step is parallel inside

# One compiler for the presets and for pip, so that they share ccache's objects; but a preset that
# names its own, such as asan, keeps it.
export CC CXX ARCHITECTURES AARCH64_CUDA
# The packages are built in the C locale, whose objects serve the other builds as well.
export CCACHE_SLOPPINESS ?= locale
# Python keeps its bytecode, in .venv, even if the environment disables it: pip compiles nothing
# there, and the tests start more than a thousand processes.
unexport PYTHONDONTWRITEBYTECODE

DEPS ?= yes
DATA ?=
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
# cmake/CudaChoice.cmake decides whether CUDA is built; with a GPU, it is built only for that one.
CUDA_ARCH ?= $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null \
                     | sed -nE 's/^([89]|[0-9]{2})\.([0-9])$$/\1\2/p' | head -n 1)
CUDA_NAMED := $(if $(CUDA_ARCH),CMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCH)-real)

ifeq ($(DEPS),no)
PY := $(or $(shell command -v $(PYTHON)),$(error PYTHON=$(PYTHON) is not found))
STAMPS := build/stamps
BINDINGS := AUTO
else
BINDINGS := ON
ifneq ($(words $(CURDIR)),1)
$(error "$(CURDIR)": make needs a path without spaces; with DEPS=no some targets work here)
endif
PY := $(CURDIR)/.venv/bin/python
STAMPS := .venv/stamps
endif

# SWIG comes from PyPI, as a program in the folder of that Python.
export PATH := $(dir $(PY)):$(PATH)

PIP := $(PY) -m pip --disable-pip-version-check
JOBS := $(shell nproc)
PACKAGE_SOURCES := pyproject.toml CMakeLists.txt $(shell find include src kernels bindings/*.i bindings/*.py \
  bindings/python cmake tests/abi/layouts -type f -not -name '*.pyc' 2>/dev/null)

CONFIGURE := cmake --preset release $(CUDA_NAMED:%=-D%)

# $(call run-tests,PRESET): run ctest, print the totals, and fail if a test failed. Many tests wait, for
# processes or for an end of time: one more than there are processors runs at a time.
define run-tests
rm -rf build/$1/junit build/$1/ctest.xml
@ctest --preset $1 -j $$(($(JOBS) + 1)) --output-junit $(CURDIR)/build/$1/ctest.xml || failed=1; \
  $(PY) scripts/test_summary.py build/$1/ctest.xml; exit $${failed:-0}
endef

.PHONY: help
help: ## Print this list
	@echo "RoboCache $$(sed -n 's/^#define RBC_VERSION_[A-Z]* //p' include/robocache/base.h | paste -sd.)"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile
	@sed -n '/^#   [A-Z]/s/^#  / /p' Makefile

.PHONY: demo
demo: deps-build $(STAMPS)/build ## Align a recording, voxelize a LiDAR sweep, get points from depth images: build/demo
	@# What the demo needs is fetched while the package is compiled. A background job ignores Ctrl-C without
	@# --default-signal.
	@env --default-signal=INT $(MAKE) --no-print-directory $(STAMPS)/demo & fetching=$$!; \
	  $(MAKE) --no-print-directory package || failed=1; \
	  wait $$fetching || failed=1; exit $${failed:-0}
	$(PY) examples/python/demo.py $(if $(DATA),--data "$(DATA)") --out build/demo

.PHONY: test
test: deps-test package $(STAMPS)/test ## Build and run every test
	$(CONFIGURE) -DROBOCACHE_BUILD_TESTS=ON -DROBOCACHE_TEST_PYTHON=$(PY) \
	  -DROBOCACHE_JAVA=$(BINDINGS) -DROBOCACHE_CSHARP=$(BINDINGS)
	cmake --build --preset release
	$(call run-tests,release)

.PHONY: test-ray
test-ray: deps-build package $(STAMPS)/ray ## Test on a Ray cluster of two nodes on this machine
	$(PY) -m pytest -q tests/python/ray/test_ray.py

.PHONY: test-compilers
test-compilers: deps-test ## Build and test with other versions of GCC and Clang, and with libc++
	scripts/test_compilers.sh $(COMPILERS)

.PHONY: build
build: deps-build ## Build librobocache.so: build/release
	$(CONFIGURE) -DROBOCACHE_BUILD_TESTS=OFF
	cmake --build --preset release

.PHONY: bench bench-gpu
bench: BACKEND := cpu
bench-gpu: BACKEND := cuda
bench: run-bench ## Benchmark the CPU backend
bench-gpu: run-bench ## Benchmark the CUDA backend (needs a GPU)

.PHONY: run-bench
run-bench: deps-bench
	$(CONFIGURE) -DROBOCACHE_BUILD_TESTS=OFF -DROBOCACHE_BUILD_BENCHMARKS=ON
	cmake --build --preset release --target robocache_bench
	build/release/benchmarks/robocache_bench --benchmark_filter='$(BACKEND)' \
	  --benchmark_out=build/bench-$(BACKEND).json --benchmark_out_format=json \
	  --benchmark_context=commit=$$(git describe --always --dirty || echo unknown) $(BENCH_ARGS)
	$(if $(AGAINST)$(RECORD),$(PY) scripts/bench_against.py --measured build/bench-$(BACKEND).json \
	  --bench build/release/benchmarks/robocache_bench $(AGAINST:%=--against %) $(RECORD:%=--record %))

.PHONY: asan tsan build-asan build-tsan
asan: build-asan ## Run the C++ tests under Clang's AddressSanitizer and UBSan
tsan: build-tsan ## Run the C++ tests under ThreadSanitizer
asan tsan:
	$(call run-tests,$@)
build-asan build-tsan: build-%: deps-test $(STAMPS)/test
	cmake --preset $* -DROBOCACHE_TEST_PYTHON=$(PY)
	cmake --build --preset $*

.PHONY: fuzz fuzz-corpus fuzz-readers soak
# Not SECONDS, which is a counting variable of bash.
fuzz: FUZZ_SECONDS := $(or $(SECONDS),600)
fuzz: deps-fuzz ## Fuzz the whole ABI with libFuzzer: SECONDS=600
	cmake --preset fuzz
	cmake --build --preset fuzz --target robocache_fuzz
	mkdir -p build/fuzz/crashes
	scripts/fuzz_corpus.sh seed tests/fuzz/regressions.hex build/fuzz/corpus
	build/fuzz/tests/fuzz/robocache_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=600 -timeout=60 -entropic=0 \
	  -rss_limit_mb=4000 -artifact_prefix=build/fuzz/crashes/ -print_final_stats=1 \
	  build/fuzz/corpus

fuzz-corpus: ## Keep only the inputs in build/fuzz/corpus that are needed to reach the same lines
	scripts/fuzz_corpus.sh merge build/fuzz/tests/fuzz/robocache_fuzz build/fuzz/corpus

fuzz-readers: deps-test package $(STAMPS)/test ## Damage recordings of every format: MUTATIONS=100000
	$(PY) tests/python/support/fuzz_readers.py --mutations $(or $(MUTATIONS),100000)

soak: deps-test $(STAMPS)/test ## Call all operations for HOURS=1; fail if memory, files or threads leak
	$(CONFIGURE) -DROBOCACHE_BUILD_TESTS=ON -DROBOCACHE_TEST_PYTHON=$(PY)
	cmake --build --preset release --target robocache_soak robocache_live_soak
	build/release/tests/robocache_live_soak 3600
	build/release/tests/fuzz/robocache_soak --hours $(or $(HOURS),1) --log build/soak.csv; status=$$?; \
	  $(PY) scripts/plot_soak.py build/soak.csv build/soak.svg; exit $$status

.PHONY: lint
lint: deps-lint$(if $(filter quick,$(LINT)),-quick) deps-test package $(STAMPS)/test $(STAMPS)/lint ## Check all sources with tools that find defects
	scripts/lint.sh $(LINT)
# Python for that architecture is stored in the build folder, and is fetched once.
.PHONY: test-aarch64
test-aarch64: deps-aarch64 $(STAMPS)/build build/aarch64/python ## Build for 64-bit ARM, run the tests under QEMU
	cmake --preset aarch64
	cmake --build --preset aarch64
	$(call run-tests,aarch64)
	PYTHON=$(PY) tests/aarch64_python_test.sh build/aarch64/python build/aarch64-python

build/aarch64/python: scripts/aarch64_python.sh | deps-aarch64 $(STAMPS)/build
	PYTHON=$(PY) scripts/aarch64_python.sh $@

.PHONY: bits-aarch64
bits-aarch64: deps-aarch64 ## Build for 64-bit ARM, run golden vectors and live fusion under QEMU
	cmake --preset aarch64
	cmake --build --preset aarch64 --target robocache_bits

.PHONY: format
format: deps-format ## Format the C, C++ and CUDA sources
	# Not the C headers that users read: clang-format cannot align their block comments.
	git ls-files -co --exclude-standard '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' '*.cuh' \
	  ':!include/robocache/*.h' | xargs -r clang-format -i

.PHONY: packages
packages: deps-packages $(if $(findstring aarch64,$(ARCHITECTURES)),deps-aarch64) $(STAMPS)/packages ## Build and check all packages, for all architectures of GPUs: dist
	PYTHON=$(PY) BINDINGS=$(BINDINGS) scripts/make_packages.sh
	$(PY) tests/packages_test.py

.PHONY: verify-packages
verify-packages: deps-packages $(STAMPS)/packages ## Check dist: sums, bills, provenance, contents
	$(PY) scripts/verify_packages.py --strict dist
	$(PY) tests/packages_test.py

.PHONY: reproduce
reproduce: packages ## Build all packages again, in another folder, and compare the bytes
	PYTHON=$(PY) BINDINGS=$(BINDINGS) scripts/check_reproducible.sh

.PHONY: docs
docs: deps-docs $(STAMPS)/docs ## Build the documentation, without a build of the library: build/docs/html
	rm -rf build/docs/html
	$(PY) -m sphinx -q -W --keep-going -d build/docs/doctrees docs build/docs/html

.PHONY: clean
clean: ## Remove everything that was built, and the virtual environment
	rm -rf build dist .venv

# --- Steps ----------------------------------------------------------------------------------------

.PHONY: deps-build deps-test deps-aarch64 deps-bench deps-format deps-docs deps-packages deps-fuzz deps-lint \
  deps-lint-quick
deps-build deps-test deps-aarch64 deps-bench deps-format deps-docs deps-packages deps-fuzz deps-lint deps-lint-quick: deps-%:
ifneq ($(DEPS),no)
	@scripts/install_deps.sh $*
endif

# Stamps keep a second run cheap and off the network.
.PHONY: package
package: $(STAMPS)/package
$(STAMPS)/package: $(STAMPS)/build $(PACKAGE_SOURCES)
	$(PIP) install . --no-build-isolation --no-deps $(CUDA_NAMED:%=--config-settings=cmake.define.%)
	@touch $@

$(STAMPS)/test: $(STAMPS)/demo
ifeq ($(DEPS),no)
$(STAMPS)/%: requirements/%.txt
	@mkdir -p $(@D) && touch $@
else
# $(call install,ARGUMENTS): the files that uv unpacks are linked into the environment, not copied.
install = $(if $(filter uv,$(INSTALLER)),UV_CACHE_DIR=.venv/uv .venv/bin/uv pip install -q --python $(PY) $1 || \
  )$(PIP) install -q --no-compile $1
$(STAMPS)/%: requirements/%.txt | .venv/bin/pip
	$(call install,$(if $(and $(filter yes,$(LOCKED)),$(wildcard requirements/locked/$*.txt)),\
	  --require-hashes -r requirements/locked/$*.txt,-r $<))
	@mkdir -p $(@D) && touch $@
.venv/bin/pip:
	$(PYTHON) -m venv .venv
	$(if $(filter uv,$(INSTALLER)),$(PIP) install -q uv || true)
endif
