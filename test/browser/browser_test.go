//go:build browser

package browser

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	root "zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/report"
	"zeroshard/report/dash"
)

// shots is where screenshots are kept, for people to look at; "" for nowhere.
var shots = os.Getenv("ZEROSHARD_SHOTS")

var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zeroshard-browser-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "zeroshard")
	build := exec.Command("go", "build", "-o", bin, "./cmd/zeroshard")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

func zeroshard(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(bin, args...)
}

// tab is a page in a browser whose console is listened to.
type tab struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true))
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	p := &tab{t: t, ctx: ctx}
	console := chromedp.Console(ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.said = append(p.said, m.String())
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v (console: %v)", what, err, p.said)
	}
}

func eval[T any](p *tab, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// wait waits until js holds.
func (p *tab) wait(js string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool](js, chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		p.t.Fatalf("waiting for %s: %v (console: %v)", js, err, p.said)
	}
}

// look sets the size of the screen and the colour scheme.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	p.do("look", chromedp.EmulateViewport(width, height), func(ctx context.Context, target *chromedp.Target) (v chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return v, err
	})
}

// shot keeps a picture of the whole page, for people to look at.
func (p *tab) shot(name string) { p.keep(name, chromedp.FullScreenshot(100)) }

func (p *tab) keep(name string, picture chromedp.Action[[]byte]) {
	p.t.Helper()
	if shots == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, picture)
	if err == nil {
		err = os.WriteFile(filepath.Join(shots, name+".png"), png, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// quiet fails if the page has complained.
func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.said {
		p.t.Errorf("console: %s", m)
	}
}

// fits fails if the page is wider than the screen.
func (p *tab) fits() {
	p.t.Helper()
	if over := eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		p.t.Errorf("the page is %d pixels wider than the screen", over)
	}
}

const ground = "getComputedStyle(document.body).backgroundColor"

func TestMemoryReport(t *testing.T) {
	dir := t.TempDir()
	// The run behind docs/images/memory.png: README has its command.
	run := zeroshard(t, "train", "--global-batch", "4", "--steps", "12", "--device-memory", "16MiB", "--memory-report", "report", "--out", "runs/demo", "--quiet")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := newTab(t)
	p.look(1240, 900, "light")
	p.do("open", chromedp.Navigate("file://"+report.PagePath(filepath.Join(dir, "report"))))
	p.wait("document.querySelectorAll('#memory canvas').length == 1 && document.querySelectorAll('#lanes canvas').length == 1")
	p.fits()
	light := eval[string](p, ground)
	p.shot("memory-light")
	p.look(1120, 925, "light")
	p.wait("document.querySelector('#memory canvas').clientWidth < 1120")
	p.keep("memory-top", chromedp.CaptureScreenshot())
	for _, c := range []struct{ what, js string }{
		{"ten holders", "document.querySelectorAll('#peak tbody tr').length == 11"},
		{"the plan's line of a holder", "document.querySelector('#peak tbody').innerText.includes('forward h.')"},
		{"step time of two ranks", "document.querySelectorAll('#split tbody tr').length == 2"},
		{"waits", "document.querySelectorAll('#waits tbody tr').length > 0"},
		{"planned equal to used", "document.querySelector('#used').innerText.includes('exactly what was planned')"},
		{"the limit", "document.querySelector('#legend').innerText.includes('limit 16 MiB')"},
		{"resident memory", "document.querySelector('#process').innerText.includes('VmRSS')"},
	} {
		if !eval[bool](p, c.js) {
			t.Errorf("the page lacks %s", c.what)
		}
	}

	// The keyboard reaches the chart: it moves a cursor, and zooms.
	p.do("keys", chromedp.Focus(chromedp.CSS("#memory")), chromedp.KeyEvent(kb.ArrowRight))
	p.wait("document.querySelector('#readout').innerText.includes('in use')")
	p.do("zoom", chromedp.KeyEvent("+"))
	p.wait("!document.querySelector('#all').disabled")
	p.do("all", chromedp.KeyEvent(kb.Escape))
	p.wait("document.querySelector('#all').disabled")

	// A kind can be hidden and the other rank shown.
	p.do("hide", chromedp.Click(chromedp.CSS("#legend button")))
	p.wait("document.querySelector('#legend button').getAttribute('aria-pressed') == 'false'")
	p.do("show", chromedp.Click(chromedp.CSS("#legend button")), chromedp.SetValue(chromedp.CSS("#rank"), "1"))
	eval[bool](p, "document.querySelector('#rank').dispatchEvent(new Event('change'))")
	p.wait("document.querySelector('#peak').innerText.includes('Rank 1 had')")

	p.look(1240, 900, "dark")
	p.wait(ground + " != '" + light + "'")
	p.shot("memory-dark")
	p.look(390, 800, "light")
	p.wait("document.querySelector('#memory canvas').clientWidth < 390")
	p.fits()
	p.shot("memory-narrow")
	p.quiet()
}

// A report of a run without steps says so.
func TestMemoryReportWithoutSteps(t *testing.T) {
	dir := t.TempDir()
	m, err := gpt.New(gpt.Config{Vocab: 19, Positions: 4, Layers: 2, Heads: 2, Width: 8})
	if err != nil {
		t.Fatal(err)
	}
	pr, err := root.Plan(root.Config{Model: m, Ranks: 2, Stage: 3, GlobalBatch: 2, MicroBatch: 1, Seq: 4})
	if err != nil {
		t.Fatal(err)
	}
	book := report.NewBook(pr, m, 3, report.Since(time.Now()))
	if err := book.WriteDir(dir, report.Subject{Title: "nothing"}, report.Process{}); err != nil {
		t.Fatal(err)
	}
	p := newTab(t)
	p.do("open", chromedp.Navigate("file://"+report.PagePath(dir)))
	p.wait("document.body.innerText.includes('No step was recorded')")
	p.shot("memory-empty")
	p.quiet()
}

// A live run shows its steps as they come, and ends.
func TestLive(t *testing.T) {
	run := zeroshard(t, "train", "--model", "tiny", "--steps", "40", "--eval-every", "10", "--ranks", "2", "--seed", "7", "--sample", "0",
		"--out", filepath.Join(t.TempDir(), "run"), "--dash", "127.0.0.1:0")
	log, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill() })
	address := make(chan string, 1)
	var told bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(log); s.Scan(); {
			told.WriteString(s.Text() + "\n")
			if u, ok := strings.CutPrefix(s.Text(), "live "); ok {
				address <- strings.TrimSpace(u)
			}
		}
	}()
	p := newTab(t)
	p.look(1240, 900, "light")
	select {
	case u := <-address:
		p.do("open", chromedp.Navigate(u))
	case <-time.After(time.Minute):
		t.Fatalf("no address\n%s", told.String())
	}
	p.wait("document.querySelector('#state').className == 'state live'")
	p.wait("document.querySelectorAll('.rank').length == 2 && document.querySelector('.rank').innerText.includes('of ')")
	p.wait("/^[0-9]+ of 40/.test(document.querySelector('.tile strong').innerText)")
	p.shot("live")
	p.wait("document.querySelector('#state').innerText == 'finished'")
	<-read
	if err := run.Wait(); err != nil {
		t.Errorf("the run: %v\n%s", err, told.String())
	}
	if got := eval[string](p, "document.querySelector('.tile strong').innerText"); got != "40 of 40" {
		t.Errorf("the last step shown is %q", got)
	}
	p.fits()
	p.shot("finished")
	p.do("keys", chromedp.Focus(chromedp.CSS("#loss")), chromedp.KeyEvent(kb.ArrowLeft))
	p.wait("document.querySelector('#l-loss').innerText.includes('at step 4')")
	p.look(390, 800, "dark")
	p.wait("document.querySelector('#loss canvas').clientWidth < 390")
	p.fits()
	p.shot("finished-narrow-dark")
	p.quiet()
}

// A page whose connection breaks comes back and goes on, with every step once.
func TestReconnect(t *testing.T) {
	s, err := dash.New(dash.Run{Title: "test", Ranks: 1, Steps: 9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close("") })
	show := func(n int) {
		t.Helper()
		if err := s.Show(report.Line{Step: &report.Step{Step: n, Loss: report.Number(n), Norm: report.Number(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	target, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	through.FlushInterval = -1
	opened := make(chan string, 8)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			opened <- r.Header.Get("Last-Event-ID")
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	show(1)
	show(2)
	p := newTab(t)
	p.do("open", chromedp.Navigate(proxy.URL))
	p.wait("document.querySelector('.tile strong')?.innerText == '2 of 9'")
	if id := <-opened; id != "" {
		t.Errorf("the first connection asked for what came after %q", id)
	}
	proxy.CloseClientConnections()
	show(3)
	p.wait("document.querySelector('.tile strong').innerText == '3 of 9'")
	if id := <-opened; !strings.HasSuffix(id, "-3") { // the head, and two steps
		t.Errorf("the second connection asked for what came after %q", id)
	}
	p.wait("document.querySelector('#state').className == 'state live'")
	proxy.CloseClientConnections() // or Close waits for the browser
}
