# The targets that people and CI run. "make" alone lists them. Only Go is needed (race: a C compiler too).
.DEFAULT_GOAL := help
STATICCHECK := go tool -modfile=tools/go.mod staticcheck
FUZZTIME ?= 20s
COUNT ?= 10
SOAK ?= 20

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static binary ./zeroshard
	CGO_ENABLED=0 go build -o zeroshard ./cmd/zeroshard

test: ## all tests (under ten minutes on two cores)
	go test ./...

race: ## a sample of every package under the race detector
	go test -race -short ./...

invariants: ## the tests with poisoned memory and checked plans
	go test -short -tags invariants ./...

fuzz: ## every fuzz target for FUZZTIME (20s)
	@set -e; for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

lint: ## go vet, staticcheck, import floors and tripwires
	go vet ./...
	$(STATICCHECK) ./...
	go test -count=1 ./internal/lint

golden: ## rewrite golden files; read the diff
	@set -e; for p in $$(go list -f '{{if .TestGoFiles}}{{.Dir}}{{else if .XTestGoFiles}}{{.Dir}}{{end}}' ./...); do \
	  if grep -lqs 'internal/golden' $$p/*_test.go; then (cd $$p && go test -short . -update); fi; done

bench: ## benchmarks, COUNT (10) times each: make bench > FILE
	@go test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

benchcmp: ## two outputs of bench compared: make benchcmp OLD=FILE NEW=FILE
	@test -n "$(OLD)" && test -n "$(NEW)" || { echo 'benchcmp needs OLD=FILE and NEW=FILE, outputs of make bench' >&2; exit 2; }
	@go tool -modfile=tools/go.mod benchstat $(OLD) $(NEW)

soak: ## the large equality grids: SOAK (20) times as many cells
	ZEROSHARD_SOAK=$(SOAK) go test -timeout 6h -count=1 ./stage_test/

cover: ## coverage of the whole tree, by package
	go test -short -coverpkg ./... -coverprofile cover.out ./... >/dev/null
	go tool cover -func cover.out | tail -1

browser: ## the report's pages in headless Chromium, where it is installed
	test/browser/run.sh

hf: ## Hugging Face folders against transformers and torch, which it installs from PyPI (6 GB, once)
	test/hf/run.sh

check: ## what must hold before a commit: gofmt, vet, lint, test, race, tidy
	.ci/run format vet static lint tests race tidy

.PHONY: help build test race invariants fuzz lint golden bench benchcmp soak cover browser hf check
