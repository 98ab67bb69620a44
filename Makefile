# make test runs everything that this machine can; make quick what a change needs first.

GO    ?= go
MODULES = . ./bench ./cmd/freehold

# Systems that the core must build and vet for.
SYSTEMS = linux/amd64 linux/arm64 linux/386 linux/riscv64 darwin/amd64 darwin/arm64 \
	windows/amd64 freebsd/amd64 openbsd/amd64 netbsd/amd64 js/wasm wasip1/wasm

FUZZTIME ?= 20s

.PHONY: test quick vet modules race portable 386 checkptr stress fuzz systems emulators bench

test: vet modules race portable 386 checkptr stress fuzz systems emulators

quick: vet
	$(GO) test -short ./...

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-clean:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	$(GO) vet -tags freehold_portable ./...

modules:
	@for m in $(MODULES); do (cd $$m && $(GO) test ./...) || exit 1; done

race:
	$(GO) test -race -short ./...

portable:
	$(GO) test -tags freehold_portable -short ./...

386:
	GOARCH=386 $(GO) test -short ./...

checkptr:
	$(GO) test -gcflags=all=-d=checkptr -short ./...

# The collector as hostile as it gets.
stress:
	GOGC=1 GODEBUG=gccheckmark=1,clobberfree=1 $(GO) test -short -cpu 1,2,4 ./internal/heap ./internal/vm

fuzz:
	$(GO) test -run '^$$' -fuzz FuzzHeap -fuzztime $(FUZZTIME) ./internal/heap

systems:
	@for s in $(SYSTEMS); do echo "vet $$s"; GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) vet ./... || exit 1; done

emulators:
	scripts/emulators

bench:
	$(GO) run ./bench
