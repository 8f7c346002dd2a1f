// Package browser opens the pages of package report in a real browser: Chromium, headless. It is a module of its own, so that the library's
// module graph stays free of what only this test needs. `make browser` (test/browser/run.sh) installs nothing but says what is
// missing.
package browser
