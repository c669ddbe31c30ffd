# make demo: install as a user does, audit the bundled model, leave runs/demo/report.html (OPEN=1: open it)
# make test: set up, lint, type-check, test          make bench: the papers' figures and benchmarks
# make test-slow: the tests that take long           make lock: constraints.txt anew
# make bench BCCD=FOLDER: those of photographs, too (docs/benchmarks.md)
# make bench QUICK=--quick: a short run of each; its figures measure nothing
# make docs: the pages of docs/, in build/site       make reference: docs/reference/{spec,cli}.md anew
# make test-lowest, make test-pythons: what else pyproject.toml promises to run on
PYTHON ?= python3
# .venv is a user's: README's install lines and nothing more. Tests have packages that users lack.
VENV := .venv-test
BIN := $(VENV)/bin
# Python compiles what it imports; pip would compile all of torch, which takes a minute.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# README's lines are tried with this Python, too, where it is installed.
NEWEST := 3.13
# Containers often set it: then every process of the tests compiles the package, and pytest the tests, anew.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(BIN)/pip install -c constraints.txt
# $(call unless,MODULE,WHAT,REMEDY): says what is skipped unless the module is there.
unless = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("$1") is None)' || echo "skipped: $2: $3"

.PHONY: demo test plain newest users fast test-slow bench skipped docs reference lint clean lock test-lowest test-pythons

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) setuptools setuptools-scm
	$(PIP) --no-build-isolation -e '.[test]'
	touch $@

plain:
	@PYTHON=$(PYTHON) $(PYTHON) tests/plain/environment.py

newest:
	@$(PYTHON) tests/plain/environment.py $(NEWEST)

demo: plain
	rm -rf runs/demo
	.venv/bin/avtt audit --demo --out runs/demo $(if $(OPEN),--open)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# mypy reads while tests wait for servers, so both together take little longer than the tests.
test:
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.ready plain newest
	$(MAKE) --no-print-directory -j 2 users fast

# What users run, in environments without the packages of the tests.
users: lint
	$(BIN)/python -m pytest tests/plain

fast: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" --ignore tests/plain

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 -m slow

$(VENV)/.docs-ready: $(VENV)/.ready
	$(PIP) --no-build-isolation -e '.[docs]'
	touch $@

docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "docs: build/site/index.html"

reference: $(VENV)/.ready
	$(BIN)/python docs/hooks/reference.py

# noxfile.py has the details.
lock: SESSION := lock
test-lowest: SESSION := lowest
test-pythons: SESSION := pythons
lock test-lowest test-pythons:
	$(PYTHON) -m venv .venvs && .venvs/bin/pip install --quiet nox uv
	.venvs/bin/nox -s $(SESSION) --envdir .venvs/nox

# QUICK=--quick: every program in its short form, and no tests.
EXPERIMENTS := $(BIN)/python -m adaptive_vtt.experiments
bench: $(VENV)/.ready skipped $(if $(QUICK),,test-slow)
	$(EXPERIMENTS).vtt.figure3 $(QUICK)
	$(EXPERIMENTS).vtt.figure4 $(QUICK)
	$(EXPERIMENTS).vtt.trained_figures $(QUICK)
	$(EXPERIMENTS).medmnistc.table3 $(QUICK) $(if $(BCCD),--data $(BCCD))
	$(EXPERIMENTS).vtt.lookahead $(QUICK)
	$(EXPERIMENTS).engine.speed $(QUICK)
	$(EXPERIMENTS).engine.crossover $(QUICK)
	$(EXPERIMENTS).engine.long_audits $(QUICK)
	$(EXPERIMENTS).engine.drift $(QUICK)
	$(EXPERIMENTS).engine.digits $(QUICK)
	$(EXPERIMENTS).engine.kernels $(QUICK)
	$(EXPERIMENTS).engine.pools $(QUICK)
	$(EXPERIMENTS).engine.self_taught $(QUICK)
	$(EXPERIMENTS).medmnistc.corruption_speed $(QUICK)
	$(EXPERIMENTS).medmnistc.census_speed $(QUICK)
	$(EXPERIMENTS).medtest.medtest_speed $(QUICK)
	$(EXPERIMENTS).medtest.retraining $(QUICK)
	$(EXPERIMENTS).medmnistc.bccd $(QUICK) $(if $(BCCD),--data $(BCCD))
	$(EXPERIMENTS).reic.scenes_and_photographs $(QUICK) $(if $(BCCD),--voc $(BCCD))
	$(EXPERIMENTS).medtest.phantom_audit $(QUICK)
	$(EXPERIMENTS).endobench.endobench_tasks $(QUICK)
	$(EXPERIMENTS).engine.endpoints $(QUICK)
	$(EXPERIMENTS).engine.prices $(QUICK)
	$(EXPERIMENTS).engine.workers $(QUICK)
	$(BIN)/python -m tests.campaigns.money $(QUICK)
	$(BIN)/python -m tests.campaigns.resilience $(QUICK)
	$(EXPERIMENTS).engine.slices $(QUICK)
	$(EXPERIMENTS).engine.forecasts $(QUICK)
	$(EXPERIMENTS).engine.after $(QUICK)
	$(EXPERIMENTS).engine.cohort $(QUICK) --journals
	$(EXPERIMENTS).engine.versus $(QUICK)
	$(EXPERIMENTS).engine.versus_replay $(QUICK)
	$(EXPERIMENTS).engine.constants $(QUICK) ROOM=1.25,FADE=.95 PROXY_WEIGHT=0,CAUTION=10,TEAMS=1
	$(EXPERIMENTS).reic.caption_tables $(QUICK) $(if $(DETECTOR),--detector $(DETECTOR))
	$(EXPERIMENTS).reic.caption_detectors $(QUICK) $(if $(DETECTOR),--detector $(DETECTOR))
	$(EXPERIMENTS).reic.caption_audits $(QUICK)
	$(EXPERIMENTS).engine.certificates $(QUICK)
	$(EXPERIMENTS).engine.hostile $(QUICK)
	$(EXPERIMENTS).engine.bets $(QUICK)
	$(EXPERIMENTS).engine.ablation $(QUICK) $(if $(BCCD),--data $(BCCD))
	$(EXPERIMENTS).engine.estimates $(QUICK)
	$(EXPERIMENTS).engine.peers $(QUICK)
	$(EXPERIMENTS).pages
	@$(MAKE) --no-print-directory skipped

# What bench leaves out for want of data or packages: said before it begins, and when it has ended.
skipped: $(VENV)/.ready
	@$(if $(BCCD),:,echo "skipped: photographs of blood (bccd, scenes_and_photographs, half of table3): clone https://github.com/Shenggan/BCCD_Dataset, then make bench BCCD=FOLDER")
	@$(if $(DETECTOR),:,echo "skipped: a real detector (caption_tables, caption_detectors): FastestDet.onnx and coco.names of https://github.com/dog-qiuqiu/FastestDet, then make bench DETECTOR=FILE")
	@$(call unless,skimage,photographs that come with scikit-image (caption_detectors),$(INSTALL) scikit-image)
	@$(call unless,ville,other packages (peers),$(BIN)/pip install proeval==0.1.1 requests ville)
	@$(call unless,medmnistc,agreement with the package medmnistc (corruption_speed),experiments/medmnistc/medmnistc_reference.py says what to install)

clean:
	rm -rf .venv $(VENV) .venvs runs bench build dist *.egg-info
