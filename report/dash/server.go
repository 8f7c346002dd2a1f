package dash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"zeroshard/report"
	"zeroshard/report/web"
)

// Run is what a page shows at its head.
type Run struct {
	Title   string        `json:"title"`
	Facts   []report.Fact `json:"facts"`
	Ranks   int           `json:"ranks"`
	Steps   int           `json:"steps"`   // in all; 0: unknown
	Planned int64         `json:"planned"` // peak of a rank, bytes; 0: unknown
	Limit   int64         `json:"limit"`   // of a rank; 0: none
}

// Server serves the page of one run.
type Server struct {
	id        string // of this server: history of another is not continued
	log       *log
	positions func() []report.Position // nil: the run is over
	every     time.Duration            // between two looks at positions
	http      *http.Server
	done      chan struct{} // closed when http has returned
	failed    error
}

// pollPositions is how often a page is told where the ranks stand, and pingEvery how often an idle connection is used, so that
// proxies and browsers keep it.
const (
	pollPositions = 250 * time.Millisecond
	pingEvery     = 15 * time.Second
	writeTimeout  = 10 * time.Second
	stopTimeout   = 2 * time.Second
)

// New makes the server of a run. positions tells where each rank stands; nil where no rank runs.
func New(run Run, positions func() []report.Position) (*Server, error) {
	s := &Server{id: strconv.FormatInt(time.Now().UnixNano(), 36), log: newLog(), positions: positions, every: pollPositions, done: make(chan struct{})}
	type head struct {
		ID string `json:"id"`
		Run
	}
	return s, s.send("run", head{s.id, run}, true)
}

// Show shows a line of the run's metrics. Nothing is shown after an end.
func (s *Server) Show(l report.Line) error {
	switch {
	case l.Step != nil:
		return s.send("step", l, l.Step.Skipped != "")
	case l.Validation != nil:
		return s.send("val", l, true)
	case l.Ended == report.EndedWell:
		return s.Finish("")
	}
	return s.Finish(l.Ended)
}

// Stale shows that the run has told nothing since a time, without having ended. The next step or validation takes it back.
func (s *Server) Stale(since time.Time) error {
	return s.send("stale", map[string]int64{"since_ms": since.UnixMilli()}, true)
}

func (s *Server) send(name string, v any, keep bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("dash: %w", err)
	}
	s.log.add(event{name: name, data: data, keep: keep})
	return nil
}

// Start listens on an address, host:port, and serves until Close. It returns the address to open.
func (s *Server) Start(addr string) (url string, err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("dash: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/events", s.events)
	mux.HandleFunc("/{$}", page)
	mux.Handle("/", http.FileServerFS(web.Files()))
	g := newGuard(l.Addr(), addr, mux)
	s.http = &http.Server{Handler: g, ReadHeaderTimeout: writeTimeout}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed = err
		}
	}()
	return "http://" + show(l.Addr().(*net.TCPAddr)) + g.prefix(), nil
}

// show is an address that one can open: where it listens everywhere, under the machine's name.
func show(a *net.TCPAddr) string {
	host := a.IP.String()
	if name, err := os.Hostname(); a.IP.IsUnspecified() && err == nil {
		host = name
	}
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

func page(w http.ResponseWriter, _ *http.Request) {
	f, err := web.Files().Open("dash.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.Copy(w, f) // the browser went away
}

// Close tells browsers how the run ended ("" for well) and stops serving. A second Close does nothing.
func (s *Server) Close(how string) error {
	if err := s.Finish(how); err != nil || s.http == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close() // whoever does not take the last event is cut off
	}
	<-s.done
	s.http = nil
	if err = errors.Join(err, s.failed); err != nil {
		return fmt.Errorf("dash: %w", err)
	}
	return nil
}

// Finish tells browsers how the run ended, and goes on serving: nothing is shown after it.
func (s *Server) Finish(how string) error {
	data, err := json.Marshal(map[string]string{"error": how})
	if err != nil {
		return fmt.Errorf("dash: %w", err)
	}
	s.log.end(event{name: "end", data: data, keep: true})
	return nil
}

// events streams the history, then what comes.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := &stream{w: w, c: http.NewResponseController(w)}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	last, where, quiet := s.resume(r.Header.Get("Last-Event-ID")), "", time.Duration(0)
	for {
		events, more, ended := s.log.after(last)
		for _, e := range events {
			last = e.seq
			out.event(s.id+"-"+strconv.Itoa(e.seq), e.name, e.data)
			quiet = 0
		}
		if out.flush(); out.err != nil || ended {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-more:
		case <-tick.C:
			if now := s.where(); now != where {
				where, quiet = now, 0
				out.event("", "at", []byte(now))
			} else if quiet += s.every; quiet >= pingEvery {
				quiet = 0
				out.ping()
			}
		}
	}
}

// resume is the sequence number that a browser has seen last: of this server, else none.
func (s *Server) resume(id string) int {
	if server, seq, ok := strings.Cut(id, "-"); ok && server == s.id {
		if n, err := strconv.Atoi(seq); err == nil {
			return n
		}
	}
	return 0
}

// where is the ranks' positions as JSON.
func (s *Server) where() string {
	if s.positions == nil {
		return ""
	}
	data, err := json.Marshal(s.positions())
	if err != nil {
		return ""
	}
	return string(data)
}

// stream writes server-sent events; the first error sticks.
type stream struct {
	w   io.Writer
	c   *http.ResponseController
	err error
}

func (o *stream) event(id, name string, data []byte) {
	if id != "" {
		id = "id: " + id + "\n"
	}
	o.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, name, data))
}

func (o *stream) ping() { o.write(": ping\n\n") }

func (o *stream) write(text string) {
	if o.err == nil {
		// A writer without deadlines (a test's) has none to set.
		if err := o.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			o.err = err
			return
		}
		_, o.err = io.WriteString(o.w, text)
	}
}

func (o *stream) flush() {
	if o.err == nil {
		o.err = o.c.Flush()
	}
}
