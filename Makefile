# make demo: set up, audit the bundled model on the bundled images, leave runs/demo/report.html (OPEN=1: open it)
# make test: set up, lint, type-check, test          make bench: the papers' figures and benchmarks
# make test-slow: the tests that take long           make lock: constraints.txt anew
# make bench BCCD=FOLDER: those of photographs, too (docs/how-to/photographs.md)
# make docs: the pages of docs/, in build/site
# make test-lowest, make test-pythons: what else pyproject.toml promises to run on
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The tests and the demo are many tiny tensors; threads only get in each other's way.
export OMP_NUM_THREADS ?= 1
# Containers often set it: then every process of the tests compiles the package, and pytest the tests, anew.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(BIN)/pip install -c constraints.txt
# $(call unless,MODULE,WHAT,REMEDY): says what is skipped unless the module is there.
unless = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("$1") is None)' || echo "skipped: $2: $3"

.PHONY: demo test fast test-slow bench skipped docs lint clean lock test-lowest test-pythons

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) setuptools setuptools-scm
	$(PIP) --no-build-isolation -e '.[test]'
	touch $@

demo: $(VENV)/.ready
	rm -rf runs/demo
	$(BIN)/avtt audit --demo --out runs/demo $(if $(OPEN),--open)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# mypy reads while tests wait for servers, so both together take little longer than the tests.
test: $(VENV)/.ready
	$(MAKE) --no-print-directory -j 2 lint fast

fast: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 -m slow

$(VENV)/.docs-ready: $(VENV)/.ready
	$(PIP) --no-build-isolation -e '.[docs]'
	touch $@

docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "docs: build/site/index.html"

# noxfile.py has the details.
lock: SESSION := lock
test-lowest: SESSION := lowest
test-pythons: SESSION := pythons
lock test-lowest test-pythons:
	$(PYTHON) -m venv .venvs && .venvs/bin/pip install --quiet nox uv
	.venvs/bin/nox -s $(SESSION) --envdir .venvs/nox

bench: $(VENV)/.ready skipped test-slow
	$(BIN)/python -m adaptive_vtt.experiments.figure3 --out bench
	$(BIN)/python -m adaptive_vtt.experiments.figure4 --out bench
	$(BIN)/python -m adaptive_vtt.experiments.trained_figures --out bench
	$(BIN)/python -m adaptive_vtt.experiments.table3 --out bench $(if $(BCCD),--data $(BCCD))
	$(BIN)/python -m adaptive_vtt.experiments.lookahead --out bench
	$(BIN)/python -m adaptive_vtt.experiments.speed --out bench
	$(BIN)/python -m adaptive_vtt.experiments.crossover --out bench
	$(BIN)/python -m adaptive_vtt.experiments.long_audits --out bench
	$(BIN)/python -m adaptive_vtt.experiments.digits
	$(BIN)/python -m adaptive_vtt.experiments.self_taught --out bench
	$(BIN)/python -m adaptive_vtt.experiments.corruption_speed --out bench
	$(BIN)/python -m adaptive_vtt.experiments.medtest_speed --out bench
	$(BIN)/python -m adaptive_vtt.experiments.retraining --out bench
	$(BIN)/python -m adaptive_vtt.experiments.bccd --out bench $(if $(BCCD),--data $(BCCD))
	$(BIN)/python -m adaptive_vtt.experiments.drawn_and_photographed --out bench $(if $(BCCD),--voc $(BCCD))
	$(BIN)/python -m adaptive_vtt.experiments.phantom_audit --out bench
	$(BIN)/python -m adaptive_vtt.experiments.endobench_tasks --out bench
	$(BIN)/python -m adaptive_vtt.experiments.endpoints --out bench
	$(BIN)/python -m adaptive_vtt.experiments.batches --out bench
	$(BIN)/python -m adaptive_vtt.experiments.prices --out bench
	$(BIN)/python -m adaptive_vtt.experiments.workers --out bench
	$(BIN)/python -m adaptive_vtt.experiments.money --out bench
	$(BIN)/python -m adaptive_vtt.experiments.resilience --out bench
	$(BIN)/python -m adaptive_vtt.experiments.fleet --out bench
	$(BIN)/python -m adaptive_vtt.experiments.slices --out bench
	$(BIN)/python -m adaptive_vtt.experiments.forecasts --out bench
	$(BIN)/python -m adaptive_vtt.experiments.after --out bench
	$(BIN)/python -m adaptive_vtt.experiments.cohort --journals --out bench
	$(BIN)/python -m adaptive_vtt.experiments.versus --out bench
	$(BIN)/python -m adaptive_vtt.experiments.versus_replay --out bench
	$(BIN)/python -m adaptive_vtt.experiments.constants ROOM=1.25,FADE=.95 TOLD=0,CAUTION=10,TEAMS=1
	$(BIN)/python -m adaptive_vtt.experiments.caption_tables $(if $(DETECTOR),--detector $(DETECTOR)) --json bench/caption_tables.json
	$(BIN)/python -m adaptive_vtt.experiments.caption_detectors $(if $(DETECTOR),--detector $(DETECTOR)) --json bench/caption_detectors.json
	$(BIN)/python -m adaptive_vtt.experiments.caption_audits --json bench/caption_audits.json
	$(BIN)/python -m adaptive_vtt.experiments.certificates --out bench
	$(BIN)/python -m adaptive_vtt.experiments.ablation --out bench $(if $(BCCD),--data $(BCCD))
	$(BIN)/python -m adaptive_vtt.experiments.estimates --out bench
	@$(MAKE) --no-print-directory skipped

# What bench leaves out for want of data or packages: said before it begins, and when it has ended.
skipped: $(VENV)/.ready
	@$(if $(BCCD),:,echo "skipped: photographs of blood (bccd, drawn_and_photographed, half of table3): clone https://github.com/Shenggan/BCCD_Dataset, then make bench BCCD=FOLDER")
	@$(if $(DETECTOR),:,echo "skipped: a real detector (caption_tables, caption_detectors): FastestDet.onnx and coco.names of https://github.com/dog-qiuqiu/FastestDet, then make bench DETECTOR=FILE")
	@$(call unless,skimage,photographs that come with scikit-image (caption_detectors),$(INSTALL) scikit-image)
	@$(call unless,medmnistc,agreement with the package medmnistc (corruption_speed),experiments/medmnistc_reference.py says what to install)

clean:
	rm -rf $(VENV) .venvs runs bench build dist *.egg-info
