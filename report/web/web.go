package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"strings"
)

//go:embed static
var static embed.FS

// Files are the files of the live page.
func Files() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil {
		return static // "static" is a valid name: it cannot happen
	}
	return sub
}

// WriteReport writes the memory report of data as one page that needs nothing beside it.
func WriteReport(w io.Writer, title string, data any) error {
	raw, err := json.Marshal(data) // escapes <, > and &, so it cannot end the element that it is in
	if err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	var pairs []string
	for mark, name := range map[string]string{"chart.css": "uPlot.min.css", "style.css": "style.css", "chart.js": "uPlot.iife.min.js",
		"shared.js": "shared.js", "report.js": "report.js"} {
		text, err := static.ReadFile("static/" + name)
		if err != nil {
			return fmt.Errorf("report: page: %w", err)
		}
		pairs = append(pairs, "{{"+mark+"}}", string(text))
	}
	pairs = append(pairs, "{{title}}", html.EscapeString(title), "{{data}}", string(raw))
	page, err := static.ReadFile("static/report.html")
	if err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	if _, err := strings.NewReplacer(pairs...).WriteString(w, string(page)); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	return nil
}
