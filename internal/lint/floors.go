package lint

import (
	"path"
	"strconv"
	"strings"
)

// The floors, lowest first. A package imports only packages of lines above its own, and its own folder. A folder below
// one of these stands on the same floor unless it has a place of its own.
const floors = `
internal
shard device prng
memory kernels collectives offload
optim models checkpoint data
models/gpt zero
config train report
.
bench
cmd examples
stage_test
`

// Backends fill a seam, the folder they are in, and import it and what is below. Only these import backends, apart from tests.
const (
	backends = `
device/cpu device/null device/cuda
kernels/ref kernels/cpu kernels/cuda
collectives/inproc collectives/mpi collectives/nccl collectives/cudalocal
offload/host offload/file
`
	wires = `. cmd stage_test`
)

var floorRules = []Rule{{
	Name: "floors",
	Why:  "a package imports only what lies below it, and backends are named only where things are wired together",
	Find: findFloors,
}}

func findFloors(t *Tree) (out []Finding) {
	for _, dir := range sortedKeys(t.Packages) {
		p := t.Packages[dir]
		if _, _, ok := place(dir); !ok {
			out = append(out, t.at(p.Files[0].AST.Package, dir, "folder %s has no floor: give it one in internal/lint/floors.go", dir))
			continue
		}
		for _, f := range p.Files {
			for _, spec := range f.AST.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				to, ours := folder(name)
				if err != nil || !ours {
					continue
				}
				if why := refused(dir, to); why != "" {
					out = append(out, t.at(spec.Pos(), to, "%s imports %s: %s", dir, to, why))
				}
			}
		}
	}
	return out
}

// refused says why a package in folder from may not import the one in folder to, "" if it may.
func refused(from, to string) string {
	fromFloor, fromFamily, _ := place(from)
	toFloor, toFamily, ok := place(to)
	switch backend := backendOf(to); {
	case !ok:
		return "that folder has no floor"
	case to == "stage_test" || under(to, "cmd"):
		return "nobody imports that"
	case testing(to) && !testing(from):
		return "a conformance suite is for tests"
	case backend != "" && !under(from, backend) && !wire(from):
		return "only the root package, cmd, stage_test and tests name a backend"
	case fromFamily == toFamily || toFloor < fromFloor:
		return ""
	}
	return "it is not on a lower floor"
}

// place finds a folder's floor (a line of the table) and family (the entry that it belongs to).
func place(dir string) (floor int, family string, ok bool) {
	for i, line := range strings.Split(strings.TrimSpace(floors), "\n") {
		for _, entry := range strings.Fields(line) {
			if (dir == entry || entry != "." && under(dir, entry)) && len(entry) > len(family) {
				floor, family, ok = i, entry, true
			}
		}
	}
	return floor, family, ok
}

func backendOf(dir string) string {
	for _, b := range strings.Fields(backends) {
		if under(dir, b) {
			return b
		}
	}
	return ""
}

func wire(dir string) bool {
	top, _, _ := strings.Cut(path.Clean(dir), "/")
	for _, w := range strings.Fields(wires) {
		if top == w {
			return true
		}
	}
	return false
}
