# Daily targets. Fresh machines start with ./run or ./test, which install what is missing.
JOBS ?= $(shell nproc)
# ctest in a folder, then the skipped tests counted by reason: $(call RUN_TESTS,FOLDER) [WORD…]
RUN_TESTS = tools/run_tests $(1) --output-on-failure --parallel $(JOBS)
# Warnings are errors in our own builds (presets, CI=true), not with a compiler that we have not tried.
WERROR ?= $(if $(filter true,$(CI)),ON,OFF)
# CUDA of the tests' build: compiled wherever nvcc is, with a GPU or without (cmake/PagodaCuda.cmake).
CUDA ?= AUTO
# Several sources at a time in build/ (cmake/PagodaTargets.cmake): the quickest from nothing. UNITY=OFF
# recompiles less after a change to one source.
UNITY ?= ON
FUZZ_SECONDS ?= 60
# ccache serves a checkout with what another one compiled: paths below this folder do not count.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
SOURCES = $(shell git ls-files --cached --others --exclude-standard \
            'src/*.h' 'src/*.cc' 'src/*.cu' 'src/*.cuh' 'tests/*.h' 'tests/*.cc' 'microbench/*.h' 'microbench/*.cc')

# Where `make install` puts the program: $(DESTDIR)$(PREFIX)/bin/pagoda.
PREFIX ?= /usr/local

.PHONY: all pagoda install wheel verify test test-long test-gpu test-x86 mutation check format format-check lint sanitize fuzz bench clean

all: build/build.ninja
	cmake --build build --parallel $(JOBS)

# The program alone, without tests and benchmarks: what ./run needs. CUDA is compiled where a GPU is.
pagoda:
	@[ -e build/build.ninja ] || cmake --preset release -DPAGODA_TESTS=OFF -DPAGODA_BENCH=OFF -DPAGODA_CUDA=DEVICE -DPAGODA_UNITY=$(UNITY) -DPAGODA_WERROR=$(WERROR)
	cmake --build build --parallel $(JOBS) --target pagoda

install: pagoda
	DESTDIR='$(DESTDIR)' cmake --install build --component program --prefix '$(PREFIX)'

# A Python wheel of the build that is there: build/wheel/pagoda_llm-*.whl.
wheel:
	@bash -c '. tools/setup.sh && install_packages build python'
	@[ -e build/build.ninja ] || cmake --preset release -DPAGODA_TESTS=OFF -DPAGODA_BENCH=OFF -DPAGODA_CUDA=OFF -DPAGODA_UNITY=$(UNITY) -DPAGODA_WERROR=$(WERROR)
	cmake build -DPAGODA_PYTHON=ON
	cmake --build build --parallel $(JOBS) --target pagoda_package
	tools/make_wheel build

# Every way to an answer gives the same bits, on this machine: MODEL=file for another model.
verify: pagoda
	build/pagoda verify $(MODEL) $(VERIFY_FLAGS)

build/build.ninja:
	cmake --preset release -DPAGODA_UNITY=$(UNITY) -DPAGODA_WERROR=$(WERROR)

test:
	cmake --preset release -DPAGODA_TESTS=ON -DPAGODA_BENCH=ON -DPAGODA_CUDA=$(CUDA) -DPAGODA_UNITY=$(UNITY) -DPAGODA_WERROR=$(WERROR)
	cmake --build build --parallel $(JOBS)
	$(call RUN_TESTS,build) --label-exclude long

test-long: all
	$(call RUN_TESTS,build)

# On a machine with a GPU: kernels against their references, whole models against the CPU, invariance.
test-gpu: all
	PAGODA_REQUIRE_GPU=1 tools/run_tests build --output-on-failure --label-regex gpu

# The quick tests, invariance and the oracle's as x86-64 programs under emulation, on a machine of
# another architecture.
test-x86:
	tools/test_emulated_x86

# Security code broken on purpose, one patch at a time, in a copy of the tree: tests must see it.
# MUTATIONS="cors tls" tries those alone whose names contain one of the words.
mutation:
	JOBS=$(JOBS) tests/mutation/run_mutations $(MUTATIONS)

check: format-check lint sanitize

format:
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run --Werror $(SOURCES) && echo 'format: fine'

# clang-tidy wants a command for each source: a folder of its own, without unity.
lint:
	cmake --preset release -B build-lint -DPAGODA_TESTS=OFF -DPAGODA_BENCH=OFF
	cmake --build build-lint --parallel $(JOBS) --target pagoda_generated_headers
	@printf '%s\n' $(filter src/%.cc,$(SOURCES)) | \
	  xargs -P $(JOBS) -n 1 clang-tidy --quiet -p build-lint && echo 'lint: fine'

sanitize:
	JOBS=$(JOBS) tools/sanitize

fuzz:
	cmake --preset fuzz -DPAGODA_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build build-fuzz --parallel $(JOBS) --target fuzz

# The cache's own benchmark first, then what surrounds it.
bench: all
	build/kv_bench
	build/kernels_bench
	build/block_hash_bench
	build/sampler_bench
	build/engine_bench
	bench/run_tokenizer_bench build

clean:
	rm -rf build build-dev build-tsan build-fuzz build-cuda build-lint build-mutation
