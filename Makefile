# The course in two commands: `make lab` opens it, `make test` proves it.
# Both set up .venv from requirements.lock on first use; they need Python 3.11-3.13 and make, nothing else.

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
SHORT := -m "not drill and not drill_all"
ALONE := tests/tf/test_lesson_keras_layouts.py  # what Keras makes without a mesh goes to the first mesh of a process
BY_FILE := -n 2 --dist loadfile  # in two processes: what a file makes once, one of them makes
WAITING := -n 3 --dist loadfile  # one more, where processes wait for each other and for iterators that end
# The reader's language, from LANGUAGE=ja on the command line or the locale; English if there is no such lesson.
READER := $(firstword $(LANGUAGE) $(LC_ALL) $(LC_MESSAGES) $(LANG))
TRANSLATIONS := $(notdir $(wildcard lessons/locale/*))
LESSONS := notebooks/$(firstword $(foreach code,$(TRANSLATIONS),$(if $(filter $(code)%,$(READER)),$(code))) en)
BUILT := $(addprefix notebooks/,en $(TRANSLATIONS))
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=600 --nbval-sanitize-with=tests/notebooks/nbval.cfg \
  $(WAITING) --no-loadscope-reorder
NOTEBOOKS := $(wildcard $(BUILT:=/*.ipynb))
APPENDICES := $(wildcard $(BUILT:=/[A-Z]*.ipynb))
TRANSLATED := $(wildcard $(TRANSLATIONS:%=notebooks/%/[0-9]*.ipynb))
# Those with a cell of the tag `versions`.
VERSIONS = $(strip $(shell grep -l '"versions"' $(TRANSLATED)))

# Lessons that start clusters take longest: their translations are executed weekly, with `make drill-all`.
CLUSTER_LESSONS = $(foreach topic,workers failures parameter_servers one_mesh,$(filter %_$(topic).ipynb,$(TRANSLATED)))

# Tests that start clusters of processes, and how many times `make drill-all` runs them.
CLUSTERS := $(addprefix tests/drill/test_,$(addsuffix .py,lesson_failures slurm))
ROUNDS ?= 20

# Programs, and what imports TensorFlow.
WITH_TENSORFLOW := $(foreach table,operations strategies,$(addprefix $(table)/,measure.py program.py)) \
  $(addprefix keras/,estimator.py keras_layouts.py)

# Notebooks are signed once, and again when they change: for each home, since Jupyter keeps the signatures there.
TRUSTED := .cache/trusted/$(firstword $(shell printf %s "$$JUPYTER_DATA_DIR$$HOME" | cksum))

AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)  # as in a container

.PHONY: lab test check lint types style unit tf notebooks catalogues nbval book serve browser pictures results bench jax torch estimator colab drill drill-all lock clean

lab: .venv/ready $(if $(NOTEBOOKS),$(TRUSTED))  ## open JupyterLab on the first lesson; LANGUAGE=ja for Japanese, LAB_ARGS="--port 9999" for Jupyter
	$(BIN)/jupyter lab $(AS_ROOT) --LabApp.app_settings_dir=$(CURDIR)/tools/jupyterlab $(LAB_ARGS) \
	  --LabApp.default_url=/lab/tree/$(firstword $(sort $(filter $(LESSONS)/%,$(NOTEBOOKS))) notebooks)

test: check tf nbval browser  ## tests, every lesson, book and browser; how long: docs/decisions/ci-time.md

check: lint unit  ## the quick loop: style, types, import contracts, translations, unit tests

lint: .venv/ready
	$(MAKE) --no-print-directory -j 2 types style

types: .venv/ready
	$(BIN)/mypy

style: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tools.catalogues check
	$(BIN)/python -m tools.checks

unit: .venv/ready
	$(PYTEST) tests/unit -q --doctest-modules course_lib lessons tools --ignore-glob="lessons/*/*/lesson.py" \
	  $(addprefix --ignore=tools/cases/,$(WITH_TENSORFLOW)) $(BY_FILE)

tf: .venv/ready
	$(PYTEST) tests/tf tests/lessons --ignore=$(ALONE) -q $(SHORT) $(BY_FILE)
	$(PYTEST) $(ALONE) -q $(SHORT)

notebooks: .venv/ready  ## build and execute every lesson in every language; after `make estimator`, the appendix too
	$(BIN)/python -m tools.lesson.build
	$(BIN)/python -m tools.lesson.execute

catalogues: .venv/ready  ## bring the translation catalogues up to date with the English
	$(BIN)/python -m tools.catalogues extract

nbval: .venv/ready  ## every stored output of the first language is what execution gives; the tools on a small course
	# The last lessons take longest and begin first. Translations: `make colab`.
	$(PYTEST) -q $(NBVAL) $(shell ls -r $(addsuffix /[0-9]*.ipynb,$(firstword $(BUILT))))
	$(PYTEST) tests/notebooks -q $(SHORT) -n 2 --dist worksteal

book: .venv/ready  ## build the site into build/book
	$(BIN)/python -m tools.book

serve: book  ## show the site on this machine
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/book 8000

browser: book
	$(PYTEST) tests/book tests/lab -q $(SHORT) $(BY_FILE)

results: .venv/ready  ## measure what lessons and book quote: trainings on reviews and images, times of steps and their parts
	$(BIN)/python -m benchmarks.results
	$(BIN)/python -m tools.cases

pictures: .venv/ready  ## take the READMEs' pictures again, in a real JupyterLab
	$(BIN)/python -m tests.lab.pictures

bench: .venv/ready  ## what is fast, as ratios measured in one run
	$(BIN)/python -m benchmarks

jax: .venv/ready  ## an environment with JAX and Keras, for `make results` and for the drill of JAX's code
	$(BIN)/python -m venv build/jax-venv
	build/jax-venv/bin/pip install --quiet "jax>=0.10,<0.11" "keras>=3.13,<4"

torch: .venv/ready  ## an environment with PyTorch, which takes gigabytes; then its code on as many processes as devices
	test -x build/torch-venv/bin/torchrun || $(BIN)/python -m venv build/torch-venv
	build/torch-venv/bin/pip install --quiet "torch>=2.5,<3" numpy
	$(PYTEST) tests/drill/test_code.py -q -m drill_all -k pytorch

estimator: .venv/ready  ## an environment with TensorFlow 2.15, which needs Python 3.11; Estimators and the appendix in it
	$(BIN)/python -m tools.environments.estimator
	$(PYTEST) tests/drill/test_everywhere.py tests/drill/test_cases.py -q -m drill_all -k estimator
	$(BIN)/python -m tools.lesson.solutions estimators
	# In their own kernel.
	$(PYTEST) -q --nbval --nbval-cell-timeout=600 --nbval-sanitize-with=tests/notebooks/nbval.cfg -n 2 --dist loadfile $(APPENDICES)

colab: .venv/ready  ## Google Colab's versions, as on an old processor, give the outputs that translations store
	$(BIN)/python -m tools.environments.colab
	# The code of translations is the same. Lessons that print how versions differ run with ours.
	ONEDNN_MAX_CPU_ISA=SSE41 $(PYTEST) -q $(NBVAL:--nbval-current-env=--nbval-kernel-name=colab) \
	  $(shell ls -r $(filter-out $(VERSIONS),$(TRANSLATED)))
	$(if $(VERSIONS),ONEDNN_MAX_CPU_ISA=SSE41 $(PYTEST) -q $(NBVAL) $(VERSIONS))

drill: .venv/ready  ## the long checks of each CI run: translations, kills, processes, the table of operations, Colab's versions
	$(MAKE) --no-print-directory colab TRANSLATED="$(filter-out $(CLUSTER_LESSONS),$(TRANSLATED))"
	$(PYTEST) tests -q -m drill --durations=12 $(WAITING)

drill-all: colab  ## all long checks, by hand and weekly: every setting, plan and language; processes ROUNDS times
	$(PYTEST) tests -q -m "drill or drill_all"
	for round in $$(seq $(ROUNDS)); do echo "round $$round of $(ROUNDS)"; $(PYTEST) $(CLUSTERS) -q -k "not many_kills" -n 2 --dist worksteal || exit 1; done

lock: .venv/ready  ## pin every dependency with its hashes
	uv pip compile pyproject.toml --all-extras --generate-hashes --no-emit-index-url --no-header \
	  --universal --python-version 3.11 --upgrade --quiet -o requirements.lock
	uv pip compile tools/environments/estimator.in --generate-hashes --no-emit-index-url --no-header \
	  --universal --python-version 3.11 --upgrade --quiet -o tools/environments/estimator.lock

clean:  ## remove everything that was made, but not the environment
	rm -rf build .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis $(BUILT)
	rm -rf $(addprefix .venv/share/jupyter/kernels/,colab estimators)  # of the environments in build

$(TRUSTED): $(NOTEBOOKS) | .venv/ready
	$(BIN)/jupyter trust $? >/dev/null
	mkdir -p $(@D)
	touch $@

.venv/ready: requirements.lock pyproject.toml tools/environments/venv.sh tools/environments/uv.txt
	@echo "Installing the environment. This takes some minutes."
	sh tools/environments/venv.sh
	touch $@
