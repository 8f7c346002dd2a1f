// Package web holds the pages of package report and report/dash: markup, style, scripts and uPlot, which draws the charts
// (version 1.6.32, MIT, static/uPlot.LICENSE). Nothing is built and nothing is fetched: what a browser gets is what lies here.
package web
