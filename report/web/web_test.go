package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
)

// uPlot is what its authors published: npm uplot 1.6.32, dist/.
func TestVendored(t *testing.T) {
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		raw, err := fs.ReadFile(Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has been changed: sha256 %x", name, sum)
		}
	}
	licence, err := fs.ReadFile(Files(), "uPlot.LICENSE")
	if err != nil || !strings.Contains(string(licence), "MIT") {
		t.Errorf("its licence: %v", err)
	}
}

// Nothing here asks another machine for anything.
func TestNothingFromElsewhere(t *testing.T) {
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(Files(), name)
		for _, bad := range []string{"http://", `src="https:`, "@import", "url(", `href="https:`, "fetch(", "XMLHttpRequest"} {
			if bytes.Contains(raw, []byte(bad)) {
				t.Errorf("%s contains %s", name, bad)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteReportEscapes(t *testing.T) {
	var page bytes.Buffer
	if err := WriteReport(&page, `</title><script>`, map[string]string{"a": "</script>{{title}}"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "</title><script>") || !strings.Contains(page.String(), `\u003c/script\u003e`) {
		t.Error("a name broke out of its place")
	}
}

// A run whose losses are NaN from the second step on has one value to draw: as a point.
func TestLoneValueIsAPoint(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	shared, err := fs.ReadFile(Files(), "shared.js")
	if err != nil {
		t.Fatal(err)
	}
	const browser = "globalThis.matchMedia = () => ({ addEventListener() {} }); globalThis.addEventListener = () => {}; globalThis.innerWidth = 1;"
	const ask = "console.log([[], [null], [3, null, null], [null, 0], [1, null, 2]].map(Z.lone).join());"
	out, err := exec.Command(node, "-e", browser+string(shared)+ask).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "true,true,true,true,false" {
		t.Errorf("%v: %s", err, got)
	}
}
