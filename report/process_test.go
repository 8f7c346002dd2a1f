package report

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
)

func tree(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func TestCgroup(t *testing.T) {
	const none = "9223372036854771712\n" // what version 1 shows for no limit
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Cgroup
	}{
		{"no control groups", nil, Cgroup{}},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.current": "10\n"},
			Cgroup{2, "/a/b", 1000, 10}},
		{"version 2, a parent is tighter", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n",
			"sys/fs/cgroup/a/memory.max": "500\n", "sys/fs/cgroup/a/memory.current": "400\n"}, Cgroup{2, "/a", 500, 400}},
		{"version 2, no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "10\n"},
			Cgroup{2, "/a", 0, 10}},
		{"version 2 in a container that sees its own root only", map[string]string{"proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/memory.max": "77\n",
			"sys/fs/cgroup/memory.current": "7\n"}, Cgroup{2, "/", 77, 7}},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "20\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": none}, Cgroup{1, "/x", 2000, 20}},
		{"version 1, no limit", map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": none,
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "30\n"}, Cgroup{1, "/", 0, 30}},
		{"both, version 1 has the limit", map[string]string{"proc/self/cgroup": "4:memory:/x\n0::/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n"},
			Cgroup{1, "/x", 2000, 0}},
		{"garbage", map[string]string{"proc/self/cgroup": "hello\n4:memory\n0::/a\n", "sys/fs/cgroup/a/memory.max": "many\n"}, Cgroup{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ReadProcess(tree(c.files)).Cgroup; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestProcess(t *testing.T) {
	root := tree(map[string]string{"proc/self/status": "Name:\tx\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nRssAnon:\t 150 kB\nRssFile:\t 50 kB\n", "proc/self/statm": "900 50 10 1 0 99 0\n"})
	p := ReadProcess(root)
	if p.Resident != 200<<10 || p.Peak != 300<<10 || p.Anonymous != 150<<10 || p.File != 50<<10 || p.GoHeap == 0 {
		t.Errorf("%+v", p)
	}
	if n := Resident(root, 4096); n != 50*4096 {
		t.Errorf("resident %d", n)
	}
	for _, text := range []string{"", "900", "a b c"} {
		if n := Resident(tree(map[string]string{"proc/self/statm": text}), 4096); n != 0 {
			t.Errorf("%q is %d bytes", text, n)
		}
	}
}

// On this system, where it is Linux, the two ways to ask agree.
func TestProcessOfThisOne(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	root := os.DirFS("/")
	p, n := ReadProcess(root), Resident(root, os.Getpagesize())
	if p.Resident == 0 || n == 0 || p.Resident > 2*n || n > 2*p.Resident {
		t.Errorf("status says %d, statm %d", p.Resident, n)
	}
}
