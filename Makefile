# `make help` lists the targets. Each works from a fresh clone, alone: what it needs is fetched or built first, and what
# is up to date is left alone.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef AT_ONCE
.NOTPARALLEL:
endif

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' python/deltaic/_version.py)
SBT_VERSION := $(shell sed -n 's/^sbt.version=//p' project/build.properties)

VENV := .venv
PY := $(VENV)/bin/python
VENV_STAMP := $(VENV)/.installed
EDITABLE_STAMP := $(VENV)/.editable
PEERS_STAMP := .tools/peers/.fetched
S3_STAMP := .tools/s3/.fetched
OTHER_SPARK := .tools/spark
OTHER_SPARK_STAMP := $(OTHER_SPARK)/.fetched
NEXT_SPARK := .tools/next-spark
NEXT_SPARK_STAMP := $(NEXT_SPARK)/.installed
CLIENTS := .tools/clients
CLIENTS_STAMP := $(CLIENTS)/.installed
TOOLS := .tools/tools
TOOLS_STAMP := $(TOOLS)/.installed
DOCS := .tools/docs
DOCS_STAMP := $(DOCS)/.installed
TPC_STAMP := .tools/tpc/.fetched
TPC_DATA_STAMP := .tools/tpc-data/.installed
# Each minor version of Spark has jars and a wheel of its own; 4.2 is the one that is developed on.
SPARK_LINE := 4.2
NEXT_SPARK_LINE := 4.3
JAR := build/jars/deltaic-spark_$(SPARK_LINE)_2.13-$(VERSION).jar
NEXT_JAR := build/jars/deltaic-spark_$(NEXT_SPARK_LINE)_2.13-$(VERSION).jar
PACKAGE_JAR := python/deltaic/jars/$(notdir $(JAR))
NEXT_PACKAGE_JAR := python/deltaic/jars/$(notdir $(NEXT_JAR))
CLASS_ARCHIVE := build/spark-classes.jsa
WHEEL := dist/deltaic-$(VERSION)-py3-none-any.whl
NEXT_WHEEL := dist/spark-$(NEXT_SPARK_LINE)/deltaic-$(VERSION)+spark$(NEXT_SPARK_LINE)-py3-none-any.whl
AS_DELTA_WHEEL := dist/deltaic_as_delta-$(VERSION)-py3-none-any.whl

JVM_SOURCES := $(shell find jvm -type f -path '*/src/main/*' -not -path '*/target/*')
PYTHON_SOURCES := $(shell find python/deltaic -type f \( -name '*.py' -o -name '*.json' -o -name py.typed \))
EXAMPLES := $(shell find examples -type f -not -path '*/__pycache__/*')
BUILD_FILES := build.sbt $(wildcard project/*.sbt project/*.scala) project/build.properties
PYTHON_CODE := python/deltaic python/as-delta/delta $(wildcard tests bench examples docs/site)

MVN := mvn -q -B -ntp
MVN_DEPENDENCY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1

# sbt: the one on PATH, else its launcher, which Maven fetches. A user's own list of repositories goes first.
SBT_OPTIONS := -Xmx2g -Xss8m -Dsbt.supershell=false -Dsbt.server.autostart=false
ifeq ($(wildcard $(HOME)/.sbt/repositories),)
SBT_OPTIONS += -Dsbt.override.build.repos=true -Dsbt.repository.config=$(CURDIR)/project/repositories
endif
SBT_ON_PATH := $(shell command -v sbt 2>/dev/null)
ifeq ($(SBT_ON_PATH),)
SBT_LAUNCHER := .tools/sbt-launch-$(SBT_VERSION).jar
SBT_START = "$$JAVA_HOME/bin/java" $(SBT_OPTIONS) -jar $(SBT_LAUNCHER)
else
SBT_LAUNCHER :=
SBT_START = SBT_OPTS="$(SBT_OPTIONS)" $(SBT_ON_PATH) --java-home "$$JAVA_HOME"
endif

# $(call sbt,commands separated by ;)
sbt = $(with_java) $(SBT_START) '$(1)' < /dev/null

# Java takes the encoding of file names from the locale, and a machine may have none.
export LC_ALL := C.UTF-8

# Spark must be the PySpark of the lock file, on the Java that was checked, whatever the caller's shell has set.
unexport SPARK_HOME PYTHONPATH PYTHONHOME PYSPARK_SUBMIT_ARGS SPARK_CONF_DIR
export SPARK_LOCAL_IP ?= 127.0.0.1
with_java = JAVA_HOME="$$(project/find-java)" && export JAVA_HOME &&
run_python = $(with_java) PYSPARK_PYTHON="$(CURDIR)/$(PY)" $(PY)

##@ Start here

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV_STAMP) $(SBT_LAUNCHER) ## Make .venv from the lock file and fetch sbt
	@project/find-java > /dev/null
	@echo "Ready: $$($(PY) --version) in $(VENV), Java in $$(project/find-java)"

.PHONY: build
build: $(PACKAGE_JAR) $(EDITABLE_STAMP) ## Build the jar and install the package, editable, into .venv

.PHONY: build-next-spark
build-next-spark: $(NEXT_PACKAGE_JAR) $(NEXT_SPARK_STAMP) ## Build the jar for PySpark 4.3, with which it is compiled

.PHONY: demo
demo: build ## Delete the cancelled of 336,776 flights and look at what it wrote
	@$(run_python) examples/flights.py $(ARGS)

##@ Write code

.PHONY: fmt
fmt: $(VENV_STAMP) $(SBT_LAUNCHER) ## Format and tidy all code (scalafmt, scalafix, ruff)
	$(PY) -m ruff check --fix-only --quiet $(PYTHON_CODE)
	$(PY) -m ruff format $(PYTHON_CODE)
	$(call sbt,scalafixAll ExplicitResultTypes; scalafixAll; scalafmtAll; scalafmtSbt)

.PHONY: lint
lint: lint-python lint-jvm ## Check format and style (ruff, import-linter, scalafmt, scalafix)

.PHONY: lint-python
lint-python: $(EDITABLE_STAMP)
	$(PY) -m ruff check $(PYTHON_CODE)
	$(PY) -m ruff format --check $(PYTHON_CODE)
	$(VENV)/bin/lint-imports

.PHONY: lint-jvm
lint-jvm: $(SBT_LAUNCHER)
	$(call sbt,$(JVM_STYLE))

JVM_STYLE := scalafmtCheckAll; scalafmtSbtCheck; scalafixAll --check

.PHONY: protocol-page
protocol-page: $(VENV_STAMP) ## Rewrite docs/protocol.md: the demands of the protocol and their tests
	$(PY) -m tests.support.protocol_page

.PHONY: type
type: $(EDITABLE_STAMP) ## Check types (mypy strict)
	$(PY) -m mypy $(PYTHON_CODE)

##@ Test

# Two at a time, since a Spark session of its own leaves the second core idle most of the time.
.PHONY: test
test: ## Everything that a change must pass
	@$(MAKE) --no-print-directory -j2 AT_ONCE=1 test-setup
	@rm -rf build/junit-*.xml jvm/*/target/test-reports
	@$(MAKE) --no-print-directory -j2 -k --output-sync=target AT_ONCE=1 check-jvm $(PYTHON_PARTS)
	@$(PY) -m tests.support.slowest

# The jar is compiled while Python is installed and checked.
.PHONY: test-setup
test-setup: $(NEXT_PACKAGE_JAR) $(PACKAGE_JAR) lint-python type $(PEERS_STAMP) $(TPC_STAMP)

# A minute of lint and types, then the tests of what has changed, the Scala suites and units beside those on Spark.
.PHONY: quick
quick: export SINCE ?= main
quick: lint-python type build $(CLASS_ARCHIVE) ## Check what changed since main in five minutes: lint, types, units, a part of the tests (SINCE=main)
	@$(call beside,quick-spark,quick-others)

.PHONY: quick-spark quick-others
quick-spark:
	@tests="$$($(PY) -m tests.support.changed "$$SINCE" spark)"; \
	  if [ -n "$$tests" ]; then $(call pytest_in_ci,spark) --every 5 $$tests; \
	  else echo "No package with tests on Spark has changed."; fi
quick-others: $(SBT_LAUNCHER)
	@$(call pytest_in_ci,units) tests/conflicts tests/unit
	@suites="$$($(PY) -m tests.support.changed "$$SINCE" scala)"; \
	  if [ -n "$$suites" ]; then $(call sbt,$(JVM_STYLE); testOnly '"$$suites"'); \
	  else echo "No Scala package has changed."; fi

.PHONY: check-jvm
check-jvm: $(SBT_LAUNCHER) $(VENV_STAMP)
	$(call sbt,$(JVM_STYLE); test)

.PHONY: test-jvm
test-jvm: $(SBT_LAUNCHER) $(VENV_STAMP) ## Run the Scala tests
	$(call sbt,test)

.PHONY: test-python
test-python: build $(PEERS_STAMP) $(TPC_STAMP) $(CLASS_ARCHIVE) ## Run the Python tests, two parts at a time
	@$(MAKE) --no-print-directory -j2 -k --output-sync=target AT_ONCE=1 $(PYTHON_PARTS)

# Tests whose Sparks are processes of their own: they run where there is a core to spare.
APART = tests/spark/session/test_readme.py tests/spark/commit/test_committer_process.py \
  tests/spark/commit/test_scala_programs.py tests/spark/session/test_servers.py

# Parts in sessions of their own, the longest first, so that two at a time keep both cores busy to the end.
SPARK_FOLDERS = $(notdir $(patsubst %/,%,$(wildcard tests/spark/*/)))
SPARK_PARTS = scan session rowlevel write+commit others
NAMED_FOLDERS = $(subst +, ,$(SPARK_PARTS))
PYTHON_PARTS = $(addprefix test-,spark-others conformance-and-units spark-write+commit peers-1 peers-0 spark-scan \
  spark-session spark-rowlevel hive-core next-spark)

.PHONY: $(PYTHON_PARTS)
test-conformance-and-units: build $(CLASS_ARCHIVE)
	$(call pytest_in_ci,units) tests/conflicts tests/unit tests/conformance tests/guide $(APART)
test-peers-0 test-peers-1: test-peers-%: build $(PEERS_STAMP) $(CLASS_ARCHIVE)
	$(call pytest_in_ci,peers-$*) $(call half,tests/peers,$*)
$(SPARK_PARTS:%=test-spark-%): test-spark-%: build $(PEERS_STAMP) $(TPC_STAMP) $(CLASS_ARCHIVE)
	$(call pytest_in_ci,spark-$*) $(APART:%=--ignore=%) \
	  $(addprefix tests/spark/,$(if $(filter others,$*),$(filter-out $(NAMED_FOLDERS),$(SPARK_FOLDERS)),$(subst +, ,$*)))

# The suites of SQL, DML and DDL, which run a second time in a session with Hive support: with others of Spark's hooks.
HIVE_SUITES = $(foreach suite,alter_table assigned_values catalog_tables change_feed change_feed_refusals \
  change_feed_writes row_level_targets column_defaults column_mapping_writes constraints delta_table generated_columns \
  identity_columns inserted_values merge_columns merge_into_writer merge_plans one_version python_udfs replace_where row_changes \
  schema_evolution show_statements sink change_streams sql_statements time_travel time_travel_spelling update_merge write_modes \
  write_statements,$(wildcard tests/spark/*/test_$(suite).py))

test-hive-core: build $(CLASS_ARCHIVE)
	$(call pytest_in_ci,hive) --hive --every 15 $(HIVE_SUITES)

# $(call half,folders,0): every second suite, from the first or the second on.
half = $$(printf '%s\n' $(1)/test_*.py | awk 'NR % 2 == $(2)')

pytest_in_ci = $(run_python) $(pytest_options)
pytest_options = -m pytest -m "not thorough" --basetemp build/pytest-$(1) --junitxml build/junit-$(1).xml

# $(call beside,targets,others): make both at once and show what the others said when both are done.
beside = log="build/$(firstword $(2)).log"; mkdir -p build; \
  $(MAKE) --no-print-directory $(2) > "$$log" 2>&1 & others=$$!; \
  status=0; $(MAKE) --no-print-directory $(1) || status=$$?; \
  wait $$others || status=$$?; cat "$$log"; exit $$status

.PHONY: test-thorough
test-thorough: export DELTAIC_THOROUGH := 1
test-thorough: build $(PEERS_STAMP) $(TPC_STAMP) ## Run what takes long and is left out of make test
	$(call sbt,testOnly *MalformedLogSuite *SkippingSoundnessSuite)
	$(run_python) -m pytest -m "thorough or drawn" --basetemp build/pytest tests --ignore tests/faults \
	  --ignore tests/s3 --ignore tests/clients --ignore tests/tools --ignore tests/ui \
	  --ignore tests/release $(ARGS)

.PHONY: test-workloads
test-workloads: export DELTAIC_WORKLOADS = $(or $(WORKLOADS),100)
test-workloads: build $(PEERS_STAMP) ## Run random workloads against brute force and delta-spark (WORKLOADS=100 of each style, SEED=7)
	$(run_python) -m pytest -m "not thorough" --basetemp build/pytest-workloads \
	  $(if $(SEED),--hypothesis-seed=$(SEED)) tests/spark/session/test_random_workloads.py tests/peers/test_differential.py $(ARGS)

.PHONY: test-peer-reads
test-peer-reads: build $(PEERS_STAMP) $(TPC_STAMP) ## Have both peers read every table that the tests on Spark leave (ARGS="-k name")
	@$(if $(ARGS),$(MAKE) --no-print-directory peer-reads-1,$(call beside,peer-reads-1,peer-reads-0))

# Every second suite: in most of the time either Deltaic works or delta-spark, and two halves keep both cores busy.
# With ARGS the first is all: pytest fails where it has no test to run.
.PHONY: peer-reads-0 peer-reads-1
peer-reads-0 peer-reads-1: peer-reads-%:
	$(call pytest_in_ci,peer-reads-$*) --peers-read \
	  $(if $(ARGS),tests/spark,$(call half,tests/spark/*,$*)) $(ARGS)

.PHONY: test-py
test-py: build $(PEERS_STAMP) $(TPC_STAMP) ## Run the Python tests: units, conflicts, Spark, peers (ARGS="-k name")
	$(run_python) -m pytest --basetemp build/pytest tests --ignore tests/conformance --ignore tests/faults \
	  --ignore tests/s3 --ignore tests/clients --ignore tests/tools --ignore tests/ui \
	  --ignore tests/release $(ARGS)

.PHONY: test-conformance
test-conformance: build $(PEERS_STAMP) ## Read tables that others wrote, row by row
	$(call pytest_folder,tests/conformance)

.PHONY: test-faults
test-faults: build $(PEERS_STAMP) ## Kill writers and break disks on purpose, one hour; not part of make test
	$(call pytest_folder,tests/faults)

# The class archive is of the Spark of the lock file, and goes unused on the other one.
.PHONY: test-hive
test-hive: build $(OTHER_SPARK_STAMP) ## Run the tests of SQL with Hive support, and on PySpark 4.2.1, too
	$(call pytest_folder,--hive $(HIVE_SUITES))
	$(call other_spark_pytest,--hive $(HIVE_SUITES))
	$(call other_spark_pytest,$(HIVE_SUITES) tests/spark/session/test_session_requirements.py)

other_spark_pytest = $(with_java) PYSPARK_PYTHON="$(CURDIR)/$(OTHER_SPARK)/venv/bin/python" \
  $(OTHER_SPARK)/venv/bin/python -m pytest --basetemp build/pytest $(1) $(ARGS)

# A part of the tests: only the shim differs from the sources for 4.2, and the tests look for what Spark has changed.
.PHONY: test-next-spark
test-next-spark: build-next-spark ## Run every tenth test of SQL, DML and DDL on PySpark 4.3
	$(with_java) PYSPARK_PYTHON="$(CURDIR)/$(NEXT_SPARK)/venv/bin/python" $(NEXT_SPARK)/venv/bin/python \
	  $(call pytest_options,next-spark) --every 10 $(HIVE_SUITES) $(ARGS)

.PHONY: test-s3
test-s3: build $(S3_STAMP) ## Race for commits on an S3-compatible server; not part of make test
	$(call pytest_folder,tests/s3)

.PHONY: test-clients
test-clients: build $(CLIENTS_STAMP) ## Run clients of Spark Connect; not part of make test
	$(call pytest_folder,tests/clients)

.PHONY: test-tools
test-tools: build $(TOOLS_STAMP) ## Run dbt, mack, kedro, SQLMesh, notebooks and others; not part of make test
	$(call pytest_folder,tests/tools)

.PHONY: test-ui
test-ui: build ## Look at Spark's UI with a browser; not part of make test
	@command -v chromium google-chrome chrome > /dev/null || { \
	  echo "There is no browser. Install Chromium (Debian, Ubuntu: apt-get install chromium) and run make again."; exit 1; } >&2
	$(call pytest_folder,tests/ui)

.PHONY: ui-picture
ui-picture: test-ui ## Take the guide's picture of Spark's UI
	cp build/ui/sql-page.png docs/guide/images/sql-page.png

pytest_folder = $(run_python) -m pytest --basetemp build/pytest $(1) $(ARGS)

.PHONY: bench
bench: build $(PEERS_STAMP) $(TPC_STAMP) $(TPC_DATA_STAMP) ## Measure against delta-spark and plain Parquet (ARGS="--scale 0.1")
	$(run_python) -m bench $(ARGS)

.PHONY: bench-results
bench-results: $(VENV_STAMP) ## Rewrite bench/RESULTS.md, and keep only the raw results that it cites
	$(run_python) -m bench --results

.PHONY: first-query-classes
first-query-classes: build ## Rewrite the list of the classes that a first query loads
	$(run_python) -m bench.first_query_classes

##@ Ship

.PHONY: wheel
wheel: $(WHEEL) $(AS_DELTA_WHEEL) ## Build the wheel, jar inside, and that of the package delta, into dist/

.PHONY: wheel-next-spark
wheel-next-spark: $(NEXT_WHEEL) ## Build the wheel for PySpark 4.3 into dist/spark-4.3/

.PHONY: release
release: wheel wheel-next-spark ## Build all that is published, into dist/: the wheels, a Maven repository, bills of materials
	rm -rf dist/maven dist/*.cdx.json
	$(call sbt,publish; makeBom)
	@$(MAKE) --no-print-directory publish-next-spark
	cp jvm/*/target/*-$(VERSION).cdx.json jvm/*/target/spark-$(NEXT_SPARK_LINE)/*-$(VERSION).cdx.json dist/

.PHONY: publish-next-spark
publish-next-spark: private SBT_OPTIONS += -Ddeltaic.spark.environment=$(NEXT_SPARK)/venv
publish-next-spark: $(NEXT_SPARK_STAMP) $(SBT_LAUNCHER)
	$(call sbt,spark/publish; deltaApi/publish; spark/makeBom; deltaApi/makeBom)

.PHONY: test-release
test-release: release $(EDITABLE_STAMP) ## Install what is published into fresh environments, and build it twice; not part of make test
	$(call pytest_folder,tests/release)

.PHONY: docs
docs: protocol-page guide $(SBT_LAUNCHER) ## Rewrite docs/protocol.md, and build the guide with the API pages into build/docs
	$(call sbt,doc)
	mkdir -p build/docs/scala
	for module in core spark delta-api; do cp -r jvm/$$module/target/scala-2.13/api build/docs/scala/$$module; done
	@echo "Open build/docs/index.html. Its search needs a server: python3 -m http.server -d build/docs"

# The site is made anew. A link that leads nowhere, also within a page, fails it.
.PHONY: guide
guide: $(DOCS_STAMP) ## Build the guide alone into build/docs, without the pages of Scala
	NO_MKDOCS_2_WARNING=1 $(DOCS)/venv/bin/python -m mkdocs build --strict --quiet

.PHONY: lock
lock: ## Pin the newest versions that the files requirements-*.in allow
	python="$$(project/find-python)" && "$$python" -m venv .tools/uv
	.tools/uv/bin/pip install -q uv
	for requirements in requirements-*.in; do \
	  case $$requirements in *next-spark*) python=3.11;; *) python=3.10;; esac; \
	  .tools/uv/bin/uv pip compile --quiet --upgrade --universal --python-version $$python \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	    $$requirements --output-file $${requirements%.in}.lock; done

.PHONY: clean
clean: ## Remove everything built; .venv and .tools stay
	rm -rf build dist target project/target project/project jvm/*/target python/build python/*.egg-info \
	  python/as-delta/build python/as-delta/*.egg-info \
	  python/deltaic/jars .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
	  metastore_db derby.log spark-warehouse $(EDITABLE_STAMP)
	find python tests bench examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true

# What the targets above are made of.

$(VENV_STAMP): requirements-dev.lock
	@if ! [ -x $(PY) ]; then \
	  python="$$(project/find-python)" && rm -rf $(VENV) && "$$python" -m venv $(VENV); \
	fi
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev.lock
	@touch $@

$(EDITABLE_STAMP): $(VENV_STAMP) python/pyproject.toml python/deltaic/_version.py
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings editable_mode=compat -e python
	@touch $@

.tools/sbt-launch-%.jar:
	@$(require_mvn)
	$(with_java) $(MVN) $(MVN_DEPENDENCY):copy -Dartifact=org.scala-sbt:sbt-launch:$* -DoutputDirectory=.tools
	@touch $@

.PHONY: peers
peers: $(PEERS_STAMP)

# One Maven at a time fills the local repository.
$(PEERS_STAMP): project/peers.pom.xml | $(SBT_LAUNCHER)
	@$(require_mvn)
	@rm -rf .tools/peers
	$(with_java) $(MVN) -f project/peers.pom.xml $(MVN_DEPENDENCY):copy-dependencies \
	  -DincludeGroupIds=io.delta -DoutputDirectory=$(CURDIR)/.tools/peers
	@touch $@

# Hadoop's S3A and what it needs of the AWS SDK, and an environment for the server.
$(S3_STAMP): project/s3.pom.xml requirements-s3.lock
	@$(require_mvn)
	@rm -rf .tools/s3
	$(with_java) $(MVN) -f project/s3.pom.xml $(MVN_DEPENDENCY):copy-dependencies \
	  -DincludeScope=runtime -DexcludeGroupIds=io.netty,org.slf4j -DoutputDirectory=$(CURDIR)/.tools/s3/jars
	python="$$(project/find-python)" && "$$python" -m venv .tools/s3/venv
	.tools/s3/venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements-s3.lock
	@touch $@

$(OTHER_SPARK_STAMP): requirements-spark.lock python/pyproject.toml python/deltaic/_version.py
	$(make_environment)
	$(call install_editable,$(OTHER_SPARK))

# Programs of others that read and write tables through Spark, in an environment of their own.
$(CLIENTS_STAMP): requirements-clients.lock
	$(make_environment)

$(TOOLS_STAMP): requirements-tools.lock
	$(make_environment)

# What builds the guide as a site.
$(DOCS_STAMP): requirements-docs.lock
	$(make_environment)

$(NEXT_SPARK_STAMP): private OLDEST_PYTHON = 3.11
$(NEXT_SPARK_STAMP): requirements-next-spark.lock python/pyproject.toml python/deltaic/_version.py
	$(make_environment)
	$(call install_editable,$(NEXT_SPARK))

install_editable = $(1)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --config-settings editable_mode=compat -e python

# In the folder of the stamp, with the packages of the lock file.
define make_environment
@rm -rf $(@D)
python="$$(project/find-python $(OLDEST_PYTHON))" && "$$python" -m venv $(@D)/venv
$(@D)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
@touch $@
endef

# The text of the TPC-DS and TPC-H queries, from the jar of Spark's tests.
$(TPC_STAMP): project/tpc.pom.xml | $(PEERS_STAMP)
	@$(require_mvn)
	@rm -rf .tools/tpc
	$(with_java) $(MVN) -f project/tpc.pom.xml $(MVN_DEPENDENCY):copy-dependencies \
	  -DexcludeTransitive=true -DincludeClassifiers=tests -DoutputDirectory=$(CURDIR)/.tools/tpc
	@touch $@

# What generates the data of TPC-DS, in an environment of its own.
$(TPC_DATA_STAMP): requirements-tpc.lock
	@rm -rf .tools/tpc-data
	python="$$(project/find-python)" && "$$python" -m venv .tools/tpc-data/venv
	.tools/tpc-data/venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements-tpc.lock
	@touch $@

require_mvn = command -v mvn > /dev/null || { \
  echo "Maven is missing: it fetches sbt and the jars of delta-spark."; \
  echo "Install it (Debian, Ubuntu: apt-get install maven; macOS: brew install maven) and run make again."; \
  exit 1; } >&2

$(JAR): $(JVM_SOURCES) $(PYTHON_SOURCES) $(BUILD_FILES) | $(SBT_LAUNCHER)
	$(call sbt,spark/assembly; deltaApi/package)
	@test -s $@ && touch $@

# One sbt at a time: both compile jvm/core.
$(NEXT_JAR): private SBT_OPTIONS += -Ddeltaic.spark.environment=$(NEXT_SPARK)/venv
$(NEXT_JAR): $(JAR) $(NEXT_SPARK_STAMP)
	$(call sbt,spark/assembly; deltaApi/package)
	@test -s $@ && touch $@

# Both jars: that of the API for Scala and Java lies beside the other.
$(PACKAGE_JAR) $(NEXT_PACKAGE_JAR): python/deltaic/jars/%: build/jars/% project/store-jar
	@mkdir -p $(@D)
	for jar in $* $(subst -spark_,-delta-api_,$*); do \
	  rm -f $(@D)/$${jar%-*}-*.jar; \
	  "$$(project/find-python)" project/store-jar $(<D)/$$jar $(@D)/$$jar; done

# Half of what it takes to start Spark, which the tests do some forty times.
$(CLASS_ARCHIVE): $(VENV_STAMP) | $(PACKAGE_JAR) $(EDITABLE_STAMP)
	@mkdir -p $(@D)
	$(run_python) -m tests.support.class_archive > build/class-archive.log 2>&1 || { cat build/class-archive.log >&2; exit 1; }

WHEEL_SOURCES := $(PYTHON_SOURCES) $(EXAMPLES) python/pyproject.toml README.md LICENSE
$(WHEEL): $(PACKAGE_JAR) $(VENV_STAMP) $(WHEEL_SOURCES)
	$(call copy_for_wheel,build/wheel,$(SPARK_LINE))
	$(call build_wheel,build/wheel)

# The same but for the jars, the PySpark that it requires, and a local version (PEP 440) that says so.
$(NEXT_WHEEL): $(NEXT_PACKAGE_JAR) $(VENV_STAMP) $(WHEEL_SOURCES) requirements-next-spark.in
	$(call copy_for_wheel,build/wheel-next,$(NEXT_SPARK_LINE))
	@sed -i.bak -e 's/"pyspark[^"]*"/"$(shell grep ^pyspark requirements-next-spark.in)"/' \
	  -e 's/^requires-python = .*/requires-python = ">=3.11"/' build/wheel-next/pyproject.toml
	@printf '[egg_info]\ntag_build = +spark$(NEXT_SPARK_LINE)\n' > build/wheel-next/setup.cfg
	$(call build_wheel,build/wheel-next)

# $(call copy_for_wheel,folder,4.2): the package with the examples, and the jars of one Spark.
define copy_for_wheel
@rm -rf $(1) $@
@mkdir -p $(1)/deltaic
@cp -rL python/pyproject.toml python/README.md python/LICENSE $(1)/
@tar -C python --exclude __pycache__ --exclude jars -c deltaic | tar -C $(1) -x
@mkdir -p $(1)/deltaic/jars && cp python/deltaic/jars/*_$(2)_*-$(VERSION).jar $(1)/deltaic/jars/
@tar --exclude __pycache__ -c examples | tar -C $(1)/deltaic -x
endef

$(AS_DELTA_WHEEL): $(VENV_STAMP) $(wildcard python/as-delta/*.* python/as-delta/delta/*)
	@rm -rf python/as-delta/build $(AS_DELTA_WHEEL)
	$(call build_wheel,python/as-delta)

# Two builds of the same sources are the same bytes.
define build_wheel
@mkdir -p $(@D)
SOURCE_DATE_EPOCH=1577836800 $(PY) -m build --wheel --no-isolation --outdir $(@D) $(1) > $@.log 2>&1 || \
  { cat $@.log >&2; exit 1; }
@rm $@.log
@touch $@
@echo "Built $@"
endef
