package dash

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"strings"
)

// guard decides who is served.
//
// On a loopback address the danger is a page of somebody else in the same browser, whose name was made to point here (DNS
// rebinding): its requests carry that name, so only names of this machine are served. Elsewhere anybody may connect: the
// address holds a token that only the run's output tells.
type guard struct {
	token string   // "" on loopback
	names []string // of this machine, beside loopback names and, with a token, addresses
	next  http.Handler
}

func newGuard(listen net.Addr, asked string, next http.Handler) *guard {
	g := &guard{next: next}
	if tcp, ok := listen.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return g
	}
	g.token = rand.Text()
	if name, err := os.Hostname(); err == nil {
		g.names = append(g.names, name)
	}
	if host, _, err := net.SplitHostPort(asked); err == nil && host != "" {
		g.names = append(g.names, host)
	}
	return g
}

// prefix is the path under which the page lies.
func (g *guard) prefix() string {
	if g.token == "" {
		return "/"
	}
	return "/" + g.token + "/"
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this page is for reading only", http.StatusMethodNotAllowed)
		return
	case !g.named(r.Host):
		http.Error(w, "not a name of this machine", http.StatusForbidden)
		return
	}
	if g.token != "" {
		token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
			http.Error(w, "open the whole address that the run has printed: it ends in a token", http.StatusForbidden)
			return
		}
		r = r.Clone(r.Context())
		r.URL.Path = "/" + rest
	}
	g.next.ServeHTTP(w, r)
}

// named reports whether a request's Host is one under which this machine may be asked.
func (g *guard) named(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || g.token != "" // a name cannot be made to look like an address
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	for _, n := range g.names {
		if strings.EqualFold(host, n) {
			return true
		}
	}
	return false
}
