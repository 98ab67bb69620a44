# make quick runs what a change needs first, make test every kind of build, and
# make test-long what takes long as well.
#
# Each kind of build tests the packages that it can break: the race detector looks
# at what goroutines do together, 386 at all of the core, and the others at the
# packages whose code is another in that build. All run with -short, which means fewer
# rounds and fewer random programs; make test-long runs modules in full.

GO    ?= go
MODULES = . ./adapters/arrow ./adapters/bigcache ./adapters/fastcache ./adapters/freecache ./adapters/grpc ./adapters/memory ./adapters/ristretto ./adapters/sqlite ./adapters/wazero ./analysis ./cmd/freehold ./examples/debugging ./lab ./metrics/otel ./metrics/prometheus ./profile
CORE    = $$($(GO) list ./... | grep -v /examples/)

# The packages with files for systems or processors, and none with net/http, whose
# packages take as long to build for a system as all others together.
SYSTEMIC = . ./arena ./budget ./buffer ./cmalloc ./epoch ./extsort ./pool ./secret ./track ./internal/...

# make test leaves to make test-long: more rounds, tests that build and run programs for
# minutes, packages that a kind of build changes only by what they import, and systems that
# another one stands for. Race builds have checkptr on, so checkptr alone is for the packages
# with code or tests that race builds leave out.
ifdef FULL
SYSTEMIC  = $(CORE)
RACED     = ./...
ON386     = $(CORE)
EXAMPLES  = ./examples/...
PORTABLE  = $(CORE)
CHECKPTR  = $(CORE)
STRESSED  = ./internal/... ./arena ./pool ./btree
else
SHORT     = -short
RACED     = . ./alloctest ./arena ./budget ./buffer ./cache ./cmalloc ./epoch ./extsort ./pool ./secret ./track $$($(GO) list ./internal/... | grep -E '/(disk|heap|keysort|monitor|owners|pages|pin|small|stacks|soak|vm|watch)(/|$$)')
ON386     = $$($(GO) list ./... | grep -v -e /examples/ -e /track/web -e /metrics/expvar)
PORTABLE  = . ./internal/heap ./internal/small ./internal/watch ./internal/pages ./internal/pin/... ./internal/stacks ./internal/test/soak ./arena ./pool ./epoch ./cache ./track
CHECKPTR  = ./internal/lockrank ./internal/heap ./internal/small ./internal/watch ./internal/pages ./arena ./budget ./pool ./hashmap ./intern ./btree ./vector ./cache
STRESSED  = ./internal/heap ./internal/small ./internal/watch ./internal/pages ./internal/owners ./internal/pin/... ./internal/vm ./arena ./pool ./btree
endif

# Systems that the core must build for, and its tests for one of each kind: those
# of linux/amd64 and linux/386 are vetted by other targets.
SYSTEMS = linux/arm64 darwin/arm64 windows/amd64 freebsd/amd64 openbsd/amd64 netbsd/amd64 js/wasm wasip1/wasm
KINDS   = darwin/arm64 windows/amd64 js/wasm
ifdef FULL
SYSTEMS += linux/riscv64 darwin/amd64 windows/arm64
KINDS   += linux/arm64 freebsd/amd64
endif

# The subtests of the conformance suite that use one goroutine.
SEQUENTIAL = (Sizes|Alignments|Zeroed|Append|Resize|Empty|Arguments|OutOfMemory|Owner|Mistakes|Programs)

# All of make test, the longest first.
TARGETS = modules race emulators systems asan today oldest 386 malloc portable stress checkptr checked seams vet release-test site

FUZZTIME ?= 3s

.PHONY: test test-long quick core $(TARGETS) lint vulns cover beam soak fuzz fuzz-long tip newest mutants faults conformance misuse bench benchstat release-check demo demo-page

# JOBS targets at a time, all of them whatever fails, and a table in the end.
test:
	@MAKE=$(MAKE) scripts/together $(TARGETS)

test-long:
	@FULL=1 MAKE=$(MAKE) scripts/together $(TARGETS) fuzz soak beam

quick: vet core

# Without the workspace, whose lab asks for a newer Go than the core.
core:
	GOWORK=off $(GO) test -short ./...

# The last line links the leaves without optimization, as debuggers want programs: the linker refuses
# a leaf whose frame takes more stack than a nosplit function may.
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-clean:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	$(GO) vet -tags freehold_portable,freehold_ranks,freehold_seams ./arena ./hashmap ./pool ./internal/...
	$(GO) run ./analysis/cmd/freeholdvet -test=false ./... ./cmd/freehold/... ./lab/...
	@! grep -E '^ *(- )?uses:' .github/workflows/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9]' || { echo "actions are pinned by the hash of a commit"; exit 1; }
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	for a in amd64 arm64; do GOARCH=$$a $(GO) test -c -gcflags=github.com/freehold-go/freehold/...=-N -o /dev/null ./internal/heap ./pool ./arena ./epoch || exit 1; done

# What vet does not find, by staticcheck, the list of common misspellings, and the width of comments.
# It is not in make test, which it would take a tenth longer.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
MISSPELL = github.com/golangci/misspell/cmd/misspell@v0.8.0
lint:
	@status=0; for m in $(MODULES); do (cd $$m && $(GO) run $(STATICCHECK) ./... | sed "s|^|$$m/|" | grep .) && status=1; done; exit $$status
	git ls-files | grep -vE '\.(png|svg)$$|testdata/|^docs/demo.html' | xargs $(GO) run $(MISSPELL) -error
	@! git ls-files '*.go' | grep -v testdata/ | xargs awk '/^[ \t]*\/\/ / && length > 102 && !/https?:|Output:|;/ { print FILENAME ":" FNR ": a comment is wider than 100 columns" }' | grep .

# Dependencies with known faults, by the Go project's list.
vulns:
	@status=0; for m in $(MODULES) ./beamsort; do (cd $$m && $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...) || status=1; done; exit $$status

# The part of the core's statements that its tests reach, as cover.html and a table.
cover:
	GOWORK=off $(GO) test -short -coverprofile cover.out -coverpkg ./... $(CORE)
	$(GO) tool cover -html cover.out -o cover.html
	$(GO) tool cover -func cover.out | tail -n 1

modules:
	@status=0; for m in $(MODULES); do (cd $$m && $(GO) test $(SHORT) ./...) || status=1; done; exit $$status

# A workspace of its own, and not in make test: it takes a compiler that has not seen Beam a minute and a half.
beam:
	cd beamsort && $(GO) vet ./... && $(GO) test ./...

# Goroutines that share memory. Long tests by one goroutine are left out, as are the seeds of
# fuzzers, maps of one goroutine and conformance by one, but on one heap, as the memory is another
# than elsewhere: Go's. Modules, 386 and checkptr have all of them, and oldest all but the long ones.
LONG = TestRandomPrograms|TestPolicy|TestPayload|TestPayloadOfManySizes|TestMemoryOfGarbage|TestProgramsCoverTheCalls|TestRunSaysWhatWasWrong|TestRefusalsDoNotReclaimInVain|TestEveryCallBelowFails|TestSortsWithLongDigits|TestLargeFramesAmongSmall|TestSortBetween|TestContradictoryOrders|TestFormats|TestSourceThatFails|TestSharedGrowMakesRoom|TestSharedLargeTablesSplit|TestKeepAll|TestLargestEntry|TestVersionsAreFree|TestIndexOfAFirstFill|TestRestoreGrowsTheIndexFirst
race:
	$(GO) test -race -short -timeout 20m -skip '^($(LONG)|Fuzz.*)$$|/^$(SEQUENTIAL)$$|//^$(SEQUENTIAL)$$' $(RACED)
	$(GO) test -race -short -run '^TestHeapConforms$$' .
	$(GO) test -race -short -run 'Shared|Beside' -skip '^($(LONG))$$' ./hashmap ./intern

# The orders between readers and writers of hashmap.Shared and of caches, forced by seams that cost Get a
# tenth, and which cache lines and locks simulated processors take from each other. Only addresses become
# pointers: TestRandomPrograms has the searches.
seams:
	$(GO) test -tags freehold_seams -short -run '^TestShared|^TestRandomPrograms$$' ./hashmap
	$(GO) test -tags freehold_seams,freehold_portable -short ./cache
	$(GO) test -tags freehold_seams -short -run '^(TestTransfers|TestLocalLoadsStayLocal|TestLocksAreOfFewProcessors|TestDirectory)$$' ./internal/small

# Blocks with red zones and a quarantine. Examples are left out: red zones change the sizes
# that they print.
checked:
	FREEHOLD_DEBUG=poison $(GO) test -short -run '^Test' . ./cache ./intern ./vector
	FREEHOLD_DEBUG=poison $(GO) test -short -run 'Conform|Poison|Checked|UseAfter|Outside|StaleReads' ./internal/heap ./arena ./pool ./alloctest
	FREEHOLD_DEBUG=poison $(GO) test -short ./internal/test/soak
	FREEHOLD_DEBUG=quarantine=10000000,profile=1000 $(GO) test -short -run '^Test' ./buffer ./epoch ./internal/test/misuse
	FREEHOLD_DEBUG=quarantine=10000000 $(GO) test -short -run '^TestTrim' ./budget

# The address sanitizer, by gcc. Left out are examples, whose figures red zones change;
# TestHandleOfClosedPool, which needs memory back at once that the quarantine keeps;
# TestSharedReserveTouchesEachPage, which reads memory that no block holds; and
# TestSpareSetKeepsItsArray, which counts allocations: what slices.Insert inserts is on the
# Go heap with -asan, as it becomes an unsafe.Pointer.
ASANSKIP = ^Example|TestHandleOfClosedPool|TestSharedReserveTouchesEachPage|TestSpareSetKeepsItsArray
asan:
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo 'int main(void) { return 0; }' | $$($(GO) env CC) -fsanitize=address -x c -o /dev/null - 2>/dev/null; then \
		set -ex; $(GO) vet -tags asan ./internal/asan ./internal/heap ./internal/small ./internal/watch ./internal/pages ./arena ./pool ./internal/test/sanitizers; \
		$(GO) test -asan -short -skip '$(ASANSKIP)' ./internal/test/sanitizers ./internal/test/misuse . ./arena ./pool ./cmalloc $(EXAMPLES); \
	else echo "skipped: asan (it takes cgo, gcc and libasan)"; fi

portable:
	$(GO) test -tags freehold_portable,freehold_ranks -short $(PORTABLE)

# C's malloc: without cgo, and on jemalloc, linked and static, where it is
# installed.
malloc:
	CGO_ENABLED=0 $(GO) vet ./cmalloc
	CGO_ENABLED=0 $(GO) test -short ./cmalloc
	cd lab && CGO_ENABLED=0 $(GO) test ./subject
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && pkg-config --exists jemalloc 2>/dev/null; then \
		set -ex; $(GO) vet -tags jemalloc ./cmalloc; \
		$(GO) test -tags jemalloc ./cmalloc; $(GO) test -race -short -tags jemalloc ./cmalloc; \
		$(GO) test -short -tags jemalloc,jemalloc_static ./cmalloc; \
		cd lab; $(GO) test -tags jemalloc ./subject; \
	else echo "skipped: jemalloc (it takes cgo, pkg-config and libjemalloc-dev)"; fi

386:
	GOARCH=386 $(GO) test -short $(ON386)

# Locks out of order panic too: see internal/lockrank.
checkptr:
	$(GO) test -tags freehold_ranks -gcflags=github.com/freehold-go/freehold/...=-d=checkptr -short $(CHECKPTR)

# The collector as hostile as it gets, on one processor and on more than there
# are. Two, as many as most machines of this kind have, is what modules uses.
stress:
	GOGC=1 GODEBUG=gccheckmark=1,clobberfree=1 $(GO) test -short -cpu 1,4 $(STRESSED)

# One program on every allocator, 11 million calls in five kinds of build. SEED=0
# makes another program each time.
SEED  ?= 1
CALLS ?= 4000000
FEWER = $$(($(CALLS) / 4))
soak:
	$(GO) test -count=1 -v ./internal/test/soak -seed $(SEED) -calls $(CALLS)
	$(GO) test -count=1 -tags freehold_portable ./internal/test/soak -seed $(SEED) -calls $(CALLS)
	GOARCH=386 $(GO) test -count=1 ./internal/test/soak -seed $(SEED) -calls $(FEWER)
	FREEHOLD_DEBUG=poison $(GO) test -count=1 ./internal/test/soak -seed $(SEED) -calls $(FEWER)
	$(GO) test -count=1 -race ./internal/test/soak -seed $(SEED) -calls $(FEWER)

# The oldest supported Go. lab is left out: the libraries that it measures ask for a newer one.
OLDEST = go1.25.14
oldest: export GOWORK = $(CURDIR)/oldest.work
oldest: export GOTOOLCHAIN = $(OLDEST)
oldest:
	@sed -e 's/^go .*/go 1.25.0/' -e '/\.\/lab$$/d' go.work >oldest.work && cp go.work.sum oldest.work.sum
	$(GO) test -short -skip '^($(LONG))$$' $(FASTPATHS) ./cache ./btree ./buffer ./extsort ./intern ./vector ./epoch ./metrics/... ./alloctest
	@for m in $(filter-out . ./lab,$(MODULES)); do (cd $$m && $(GO) vet ./...) || exit 1; done
	@rm -f oldest.work oldest.work.sum

# The core with the newest Go that the assembly was tested with; TestKnown fails with any
# other. make newest takes the newest that there is: see CONTRIBUTING.md.
TODAY = go1.27.4
FASTPATHS = ./internal/pin ./internal/stacks ./internal/heap ./internal/small ./internal/watch ./internal/pages . ./arena ./pool ./hashmap ./budget ./track/...
today:
	GOTOOLCHAIN=$(TODAY) $(GO) test -short $(FASTPATHS)

# A Go that is to come, as GO=/path/to/go says: the assembly was not tested with it.
tip:
	GOTOOLCHAIN=local $(GO) test -short -skip '^(TestKnown|TestOnlyTestedVersionsAreKnown)$$' ./...

newest:
	GOTOOLCHAIN=go$$($(GO) list -m -f '{{.Version}}' go@latest) $(GO) test ./...

# Disks that become full and processes that are killed, for some minutes; make test has
# a short run. Disks take the right to mount, by root or in a namespace of one's own.
FILLS ?= 1000
KILLS ?= 500
faults:
	$(GO) test -count=1 -v ./internal/test/faults -seed $(SEED) -fills $(FILLS) -kills $(KILLS)
	cd cmd/freehold && $(GO) test -count=1 -v -run 'SortFills|KillsOfASort|KillsOfASnapshot|SnapshotFills' . -seed $(SEED) -fills $(FILLS) -kills $(KILLS)

# Tests of freehold cache by other projects and their clients, none skipped. It needs Debian 12 with
# git, perl, java, mvn, node, npm and python3-venv.
conformance:
	cd cmd/freehold && CONFORMANCE=required $(GO) test -count=1 -v -timeout 30m -run Conformance .

# Each fuzzer for a short time, from the corpora that long runs have left in
# testdata/fuzz.
fuzz:
	scripts/fuzz $(FUZZTIME)

fuzz-long:
	scripts/fuzz 10m

systems:
	@status=0; for s in $(SYSTEMS); do echo "build $$s"; GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) build $(SYSTEMIC) || status=1; done; \
	for s in $(KINDS); do echo "vet $$s"; GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) vet $(SYSTEMIC) || status=1; done; exit $$status

emulators:
	FULL=$(FULL) scripts/emulators

# Operators and conditions of a package changed one by one, in a copy of the module.
PKG ?= ./vector
mutants:
	GOWORK=off GOFLAGS='-short -vet=off' $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash $(PKG)

# Every mistake of internal/test/misuse in every build and mode, and the tables of what is
# detected: in docs/vet.md, docs/reliability.md and the README.
misuse:
	$(GO) test -count=1 ./internal/test/misuse -skip Tables
	$(GO) test -count=1 -race ./internal/test/misuse -skip Tables
	$(GO) test -count=1 -asan ./internal/test/misuse -skip Tables
	cd analysis && $(GO) test -count=1 -run TestMisuse . -update
	$(GO) test -count=1 ./internal/test/misuse -run Tables -update

# The site of docs, in which every link is checked. .ci/run installs mkdocs-material in .site/venv, as
# docs/requirements.txt has it.
site:
	@export PATH="$(CURDIR)/.site/venv/bin:$$PATH" NO_MKDOCS_2_WARNING=1; \
	if python3 -c 'import material' 2>/dev/null; then python3 -B scripts/site_test.py -q && python3 -m mkdocs build --strict; \
	else echo "skipped: site (pip install -r docs/requirements.txt, in a venv at .site/venv or elsewhere)"; fi

bench:
	@echo "building lab, a minute or two the first time"
	@$(GO) run ./lab bench

# A rehearsal of a release of HEAD: see scripts/release.
VERSION ?= v$(shell sed -n 's/^## \[\([0-9][^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
release-check: release-test
	scripts/release $(VERSION)

release-test:
	FULL=$(FULL) scripts/release_test

# The benchmarks of PKG that BENCH matches, at the commit BASE and here, in turn.
BASE  ?= HEAD
BENCH ?= .
benchstat:
	scripts/benchstat '$(BASE)' '$(PKG)' '$(BENCH)'

# The page of the demo in docs, and the picture of it, by a run on an idle machine.
demo-page:
	$(GO) run ./cmd/freehold demo --html docs/demo.html
	$(GO) test ./cmd/freehold/report -count=1 -run TestDemoInDocs -update

demo:
	@$(GO) run ./cmd/freehold demo
