package report

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Process is the memory of this process as the operating system sees it, in bytes; zero where it does not say. Device
// memory of the CPU device is part of it.
type Process struct {
	Resident  int64  `json:"resident"`  // VmRSS
	Anonymous int64  `json:"anonymous"` // of it: heap, stacks, arenas
	File      int64  `json:"file"`      // of it: the program itself, mapped data
	Peak      int64  `json:"peak"`      // VmHWM
	GoHeap    int64  `json:"go_heap"`   // heap and stacks that the Go runtime has from the system
	Cgroup    Cgroup `json:"cgroup"`
}

// Cgroup is the memory limit of the control group that the process is in: the smallest of its own and its parents'.
type Cgroup struct {
	Version int    `json:"version"` // 1 or 2; 0 without control groups
	Path    string `json:"path"`    // of the group whose limit it is
	Limit   int64  `json:"limit"`   // 0: none
	Usage   int64  `json:"usage"`   // of that group, page cache included
}

// ReadProcess reads /proc and /sys under root (os.DirFS("/")). What is not there stays zero: not every system has it.
func ReadProcess(root fs.FS) Process {
	p := Process{Cgroup: readCgroup(root)}
	for key, value := range fields(root, "proc/self/status") {
		n := kilobytes(value)
		switch key {
		case "VmRSS":
			p.Resident = n
		case "VmHWM":
			p.Peak = n
		case "RssAnon":
			p.Anonymous = n
		case "RssFile":
			p.File = n
		}
	}
	p.GoHeap = goMemory()
	return p
}

// goMemory is what the Go runtime has from the system. Unlike runtime.ReadMemStats it does not stop the ranks.
func goMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0 // a runtime that counts otherwise
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// Resident is the resident memory alone, quickly: what every step asks.
func Resident(root fs.FS, pageSize int) int64 {
	text, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(pageSize)
}

// fields reads a file of "key: value" lines.
func fields(root fs.FS, name string) map[string]string {
	out := map[string]string{}
	f, err := root.Open(name)
	if err != nil {
		return out
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}

// kilobytes reads "123 kB".
func kilobytes(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n * 1024
}

// readCgroup looks at every mount point of control groups. A group's own limit may be larger than a parent's, so it walks up. Inside a
// container the path of /proc/self/cgroup may be the host's: then only the mount's root is there to be read.
func readCgroup(root fs.FS) Cgroup {
	var c Cgroup
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "": // "0::/path": version 2, also beside version 1
			c = c.tighter(walk(root, 2, "sys/fs/cgroup", parts[2]))
		case hasController(parts[1], "memory"):
			c = c.tighter(walk(root, 1, "sys/fs/cgroup/memory", parts[2]))
		}
	}
	return c
}

func hasController(list, name string) bool {
	for _, c := range strings.Split(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

// tighter is the group with the smaller limit.
func (c Cgroup) tighter(o Cgroup) Cgroup {
	if c.Version == 0 || o.Limit != 0 && (c.Limit == 0 || o.Limit < c.Limit) {
		return o
	}
	return c
}

// unlimited is what version 1 shows for no limit: the largest whole pages in an int64; anything near is none.
const unlimited = int64(1) << 60

// walk looks at a group and its parents up to the mount point. Groups that say nothing are passed over.
func walk(root fs.FS, version int, mount, group string) (c Cgroup) {
	limit, usage := "memory.max", "memory.current"
	if version == 1 {
		limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	for at := path.Join("/", group); ; at = path.Dir(at) {
		dir := path.Join(mount, at)
		used, ok := number(root, path.Join(dir, usage))
		most, limited := number(root, path.Join(dir, limit))
		if ok || limited {
			here := Cgroup{Version: version, Path: at, Usage: used}
			if limited && most < unlimited {
				here.Limit = most
			}
			c = c.tighter(here)
		}
		if at == "/" {
			return c
		}
	}
}

// number reads a file that holds one number; "max" is none.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
