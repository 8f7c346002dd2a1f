package dash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zeroshard/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func step(n int) report.Line {
	return report.Line{Step: &report.Step{Step: n, Loss: report.Number(math.NaN())}}
}

func serve(t *testing.T, addr string, positions func() []report.Position) (*Server, string) {
	t.Helper()
	s, err := New(Run{Title: "test", Ranks: 2, Steps: 9}, positions)
	if err != nil {
		t.Fatal(err)
	}
	s.every = 5 * time.Millisecond
	url, err := s.Start(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(""); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s, url
}

func tell(t *testing.T, s *Server, lines ...report.Line) {
	t.Helper()
	for _, l := range lines {
		if err := s.Show(l); err != nil {
			t.Fatal(err)
		}
	}
}

// got is an event as a browser gets it.
type got struct{ id, name, data string }

// listen connects and hands out events, without positions unless asked for. It stops at the end of the stream.
func listen(t *testing.T, url, lastID string) <-chan got {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	out := make(chan got, 10000)
	go func() {
		defer close(out)
		defer res.Body.Close()
		var e got
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			switch key, value, _ := strings.Cut(s.Text(), ": "); key {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					out <- e
				}
				e = got{}
			}
		}
	}()
	return out
}

func next(t *testing.T, events <-chan got, name string) got {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("the stream ended before %q", name)
			}
			if e.name == name {
				return e
			}
			if e.name != "at" {
				t.Fatalf("event %+v, want %q", e, name)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event %q", name)
		}
	}
}

func number(t *testing.T, e got) int {
	t.Helper()
	var l report.Line
	if err := json.Unmarshal([]byte(e.data), &l); err != nil {
		t.Fatalf("%v: %s", err, e.data)
	}
	return l.Step.Step
}

// Who comes late gets the history, then what comes; who comes back gets what he missed.
func TestReplay(t *testing.T) {
	s, url := serve(t, "127.0.0.1:0", nil)
	tell(t, s, step(1), step(2), report.Line{Validation: &report.Validation{Step: 2, ValLoss: 3}})
	a := listen(t, url, "")
	var head Run
	if err := json.Unmarshal([]byte(next(t, a, "run").data), &head); err != nil || head.Title != "test" || head.Steps != 9 {
		t.Errorf("%+v %v", head, err)
	}
	if n := number(t, next(t, a, "step")); n != 1 {
		t.Errorf("first step %d", n)
	}
	second := next(t, a, "step")
	if n := number(t, second); n != 2 || !strings.Contains(second.data, `"loss":"NaN"`) {
		t.Errorf("%+v", second)
	}
	next(t, a, "val")
	tell(t, s, step(3))
	if n := number(t, next(t, a, "step")); n != 3 {
		t.Errorf("step %d, want 3", n)
	}
	b := listen(t, url, second.id)
	next(t, b, "val")
	if n := number(t, next(t, b, "step")); n != 3 {
		t.Errorf("step %d, want 3", n)
	}
	// Of another server's history nothing is continued.
	c := listen(t, url, "other-3")
	next(t, c, "run")
	if err := s.Close("boom"); err != nil {
		t.Error(err)
	}
	for _, events := range []<-chan got{a, b} {
		if e := next(t, events, "end"); e.data != `{"error":"boom"}` {
			t.Errorf("%+v", e)
		}
		if _, more := <-events; more {
			t.Error("something came after the end")
		}
	}
	if err := s.Close(""); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A finished run is shown to whoever comes.
func TestFinished(t *testing.T) {
	s, url := serve(t, "127.0.0.1:0", nil)
	tell(t, s, step(1))
	if err := s.Finish(""); err != nil {
		t.Fatal(err)
	}
	tell(t, s, step(2)) // too late
	for range 2 {
		e := listen(t, url, "")
		next(t, e, "run")
		next(t, e, "step")
		next(t, e, "end")
	}
}

func TestPositionsAreSentWhenTheyChange(t *testing.T) {
	var at atomic.Int64
	_, url := serve(t, "127.0.0.1:0", func() []report.Position { return []report.Position{{Mode: "train", Ops: 9, Live: at.Load()}} })
	e := listen(t, url, "")
	next(t, e, "run")
	for i := range int64(3) {
		at.Store(i)
		for {
			if strings.Contains(next(t, e, "at").data, fmt.Sprintf(`"live":%d`, i)) {
				break
			}
		}
	}
}

// Whoever may not see the run sees nothing of it.
func TestGuard(t *testing.T) {
	_, loop := serve(t, "127.0.0.1:0", nil)
	_, open := serve(t, "0.0.0.0:0", nil)
	loopPort, openPort := port(t, loop), port(t, open)
	token := strings.Split(strings.TrimPrefix(open, "http://"), "/")[1]
	if len(token) < 26 {
		t.Fatalf("token %q in %s: too short to be secret", token, open)
	}
	for _, c := range []struct {
		name, method, port, path, host string
		want                           int
	}{
		{"loopback", "GET", loopPort, "/", "", 200},
		{"loopback by name", "GET", loopPort, "/", "localhost:" + loopPort, 200},
		{"loopback through a tunnel", "GET", loopPort, "/", "localhost:99", 200},
		{"a name that was made to point here", "GET", loopPort, "/", "evil.example:" + loopPort, 403},
		{"its events", "GET", loopPort, "/events", "evil.example", 403},
		{"another address", "GET", loopPort, "/", "192.0.2.1", 403},
		{"no such file", "GET", loopPort, "/nope", "", 404},
		{"a step upwards", "GET", loopPort, "/..%2fweb.go", "", 404},
		{"writing", "POST", loopPort, "/", "", 405},
		{"script", "GET", loopPort, "/dash.js", "", 200},
		{"open without token", "GET", openPort, "/", "", 403},
		{"open, events without token", "GET", openPort, "/events", "", 403},
		{"open, wrong token", "GET", openPort, "/" + strings.Repeat("A", len(token)) + "/", "", 403},
		{"open, part of the token", "GET", openPort, "/" + token[:10] + "/", "", 403},
		{"open, token", "GET", openPort, "/" + token + "/", "", 200},
		{"open, token, script", "GET", openPort, "/" + token + "/dash.js", "", 200},
		{"open, token, a foreign name", "GET", openPort, "/" + token + "/", "evil.example", 403},
		{"open, token, an address", "GET", openPort, "/" + token + "/", "192.0.2.1:80", 200},
		{"open, token, writing", "DELETE", openPort, "/" + token + "/", "", 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1:"+c.port+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("%s, want %d", res.Status, c.want)
			}
			if csp := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("headers %v", res.Header)
			}
		})
	}
}

func port(t *testing.T, url string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(strings.Split(strings.TrimPrefix(url, "http://"), "/")[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStartRefuses(t *testing.T) {
	_, url := serve(t, "127.0.0.1:0", nil)
	s, err := New(Run{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start("127.0.0.1:" + port(t, url)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := s.Close(""); err != nil {
		t.Errorf("Close of what never started: %v", err)
	}
}

// A browser that takes nothing holds up neither the run nor its end.
func TestStuckBrowser(t *testing.T) {
	s, url := serve(t, "127.0.0.1:0", nil)
	c, err := net.Dial("tcp", "127.0.0.1:"+port(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 16<<10)
	for n := 1; n <= maxEvents/4; n++ { // megabytes: more than sockets hold
		tell(t, s, report.Line{Step: &report.Step{Step: n, Skipped: big}})
	}
	if err := s.Close(""); err != nil {
		t.Error(err)
	}
}

// History is bounded; it keeps its first and its latest events, and thins out evenly behind them.
func TestHistoryIsBounded(t *testing.T) {
	l := newLog()
	l.add(event{name: "run"})
	const all = 10 * maxEvents
	for n := 1; n <= all; n++ {
		l.add(event{name: "step", data: []byte(strconv.Itoa(n)), keep: n%100 == 0})
	}
	events, _, _ := l.after(0)
	if len(events) > maxEvents || len(events) < maxEvents/2 {
		t.Errorf("%d events", len(events))
	}
	if events[0].name != "run" || string(events[len(events)-1].data) != strconv.Itoa(all) {
		t.Errorf("first %+v, last %+v", events[0], events[len(events)-1])
	}
	for i := 1; i < len(events); i++ {
		if events[i].seq <= events[i-1].seq {
			t.Fatalf("event %d came before %d", events[i].seq, events[i-1].seq)
		}
	}
	for i := len(events) - 1; i > len(events)-maxEvents/2; i-- {
		if events[i].seq != events[i-1].seq+1 {
			t.Fatalf("the latest are thinned: %d after %d", events[i].seq, events[i-1].seq)
		}
	}
	if tail, _, _ := l.after(all - 3); len(tail) != 4 {
		t.Errorf("%d events after the last but four", len(tail))
	}
}
