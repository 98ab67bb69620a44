#!/bin/bash -eu
# Builds each fuzz target of the core, with the corpus in testdata/fuzz as its seeds. The tools of
# the image add a dependency to go.mod, which a workspace would not allow.
export GOWORK=off
for file in $(git grep -l '^func Fuzz' -- '*_test.go' ':!cmd' ':!examples'); do
	dir=$(dirname "$file")
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		target=$(echo "$dir" | tr -d . | tr / _)_$name
		compile_native_go_fuzzer "github.com/freehold-go/freehold/$dir" "$name" "$target"
		[ ! -d "$dir/testdata/fuzz/$name" ] || zip -qj "$OUT/${target}_seed_corpus.zip" "$dir/testdata/fuzz/$name"/*
	done
done
