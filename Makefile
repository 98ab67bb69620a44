# make test runs everything that this machine can; make quick what a change needs first.

GO    ?= go
MODULES = . ./bench ./cmd/freehold

# Systems that the core must build and vet for.
SYSTEMS = linux/amd64 linux/arm64 linux/386 linux/riscv64 darwin/amd64 darwin/arm64 \
	windows/amd64 freebsd/amd64 openbsd/amd64 netbsd/amd64 js/wasm wasip1/wasm

FUZZTIME ?= 10s

.PHONY: test quick vet modules race debug portable malloc 386 checkptr stress soak fuzz systems emulators bench

test: vet modules race debug portable malloc 386 checkptr stress soak fuzz systems emulators

quick: vet debug
	$(GO) test -short ./...

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-clean:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	$(GO) vet -tags freehold_portable ./...

modules:
	@for m in $(MODULES); do (cd $$m && $(GO) test ./...) || exit 1; done

race:
	$(GO) test -race -short ./...

debug:
	$(GO) vet -tags freehold_debug ./arena ./internal/misuse
	$(GO) test -tags freehold_debug -short ./arena ./internal/misuse ./internal/soak ./examples/...

portable:
	$(GO) test -tags freehold_portable -short ./...

# C's malloc: without cgo, and on jemalloc, linked and static, where it is
# installed.
malloc:
	CGO_ENABLED=0 $(GO) vet ./cmalloc
	CGO_ENABLED=0 $(GO) test -short ./cmalloc
	cd cmd/freehold && CGO_ENABLED=0 $(GO) test -short ./...
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && pkg-config --exists jemalloc 2>/dev/null; then \
		set -ex; $(GO) vet -tags jemalloc ./cmalloc; \
		$(GO) test -tags jemalloc ./cmalloc; $(GO) test -race -short -tags jemalloc ./cmalloc; \
		$(GO) test -short -tags jemalloc,jemalloc_static ./cmalloc; \
		cd cmd/freehold; $(GO) test -short -tags jemalloc ./...; \
	else echo "skipped: jemalloc (it takes cgo, pkg-config and libjemalloc-dev)"; fi

386:
	GOARCH=386 $(GO) test -short ./...

checkptr:
	$(GO) test -gcflags=all=-d=checkptr -short ./...

# The collector as hostile as it gets.
stress:
	GOGC=1 GODEBUG=gccheckmark=1,clobberfree=1 $(GO) test -short -cpu 1,2,4 ./internal/... ./arena ./pool

# One program on every allocator, in under two minutes: 10 million calls as it
# is, and more in other builds. SEED=0 makes another program each time.
SEED ?= 1
soak:
	$(GO) test -count=1 -v ./internal/soak -seed $(SEED) -calls 10000000
	$(GO) test -count=1 -tags freehold_portable ./internal/soak -seed $(SEED) -calls 10000000
	GOARCH=386 $(GO) test -count=1 ./internal/soak -seed $(SEED) -calls 5000000
	$(GO) test -count=1 -tags freehold_debug ./internal/soak -seed $(SEED) -calls 1000000
	$(GO) test -count=1 -race ./internal/soak -seed $(SEED) -calls 1000000

fuzz:
	$(GO) test -run '^$$' -fuzz FuzzHeap -fuzztime $(FUZZTIME) ./internal/heap
	$(GO) test -run '^$$' -fuzz FuzzHeap -fuzztime $(FUZZTIME) ./cmalloc
	$(GO) test -run '^$$' -fuzz FuzzArena -fuzztime $(FUZZTIME) ./arena
	$(GO) test -run '^$$' -fuzz FuzzShared -fuzztime $(FUZZTIME) ./arena
	$(GO) test -run '^$$' -fuzz FuzzBlocks -fuzztime $(FUZZTIME) ./pool
	$(GO) test -run '^$$' -fuzz FuzzPool -fuzztime $(FUZZTIME) ./pool
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./examples/parser-scratch
	$(GO) test -run '^$$' -fuzz FuzzDecoder -fuzztime $(FUZZTIME) ./examples/request-pool

systems:
	@for s in $(SYSTEMS); do echo "vet $$s"; GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) vet ./... || exit 1; done

emulators:
	scripts/emulators

bench:
	$(GO) run ./bench
