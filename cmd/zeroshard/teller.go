package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"zeroshard/data/tokenizer"
	"zeroshard/train"
)

// teller writes the texts of a batch in the order of their prompts: the first that is not done as it comes, those behind it when it is their
// turn.
type teller struct {
	g     *generation
	out   io.Writer
	texts []telling
	first int // number of the first prompt
	at    int // the text whose turn it is
}

// telling is one text.
type telling struct {
	stream *tokenizer.Stream
	held   strings.Builder // what waits for its turn
	text   strings.Builder // all of it, for JSON
	done   bool
	record record
}

// record is a text as JSON.
type record struct {
	Prompt    string  `json:"prompt"`
	Text      string  `json:"text"` // that follows the prompt
	PromptIDs []int32 `json:"prompt_ids"`
	IDs       []int32 `json:"ids"`
	Ended     bool    `json:"ended"` // by the model, before --max-tokens
}

// between stands between texts.
const between = "---------------"

func newTeller(g *generation, lo, hi int) *teller {
	t := &teller{g: g, out: g.stdout, texts: make([]telling, hi-lo), first: lo}
	for i := range t.texts {
		x := &t.texts[i]
		x.stream = tokenizer.NewStream(g.words)
		x.record = record{PromptIDs: g.ids[lo+i], IDs: []int32{}}
	}
	return t
}

// begin writes the prompts: through the streams, as a text may go on in the middle of a prompt's last character.
func (t *teller) begin() error {
	for i := range t.texts {
		x := &t.texts[i]
		if t.g.prompts[t.first+i] == "" { // what starts a document is no part of it
			continue
		}
		var prompt strings.Builder
		for _, id := range x.record.PromptIDs {
			piece, err := x.stream.Add(id)
			if err != nil {
				return err
			}
			prompt.WriteString(piece)
		}
		x.record.Prompt = prompt.String()
		x.held.WriteString(x.record.Prompt)
	}
	return t.tell()
}

// hear takes a token.
func (t *teller) hear(d train.Drawn) error {
	x := &t.texts[d.Prompt]
	if x.record.Ended = d.Ended; !d.Ended {
		piece, err := x.stream.Add(d.Token)
		if err != nil {
			return err
		}
		t.add(x, piece)
		x.record.IDs = append(x.record.IDs, d.Token)
	}
	if d.Last {
		t.add(x, x.stream.End())
		x.done = true
	}
	return t.tell()
}

func (t *teller) add(x *telling, piece string) {
	if t.g.json {
		x.text.WriteString(piece)
	} else {
		x.held.WriteString(piece)
	}
}

// tell writes what can be written.
func (t *teller) tell() error {
	for t.at < len(t.texts) {
		x := &t.texts[t.at]
		if err := t.write(x); err != nil {
			return err
		}
		if !x.done {
			return nil
		}
		if t.at++; !t.g.json && t.at < len(t.texts) {
			if err := t.separate(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *teller) separate() error {
	_, err := fmt.Fprintln(t.out, between)
	return err
}

func (t *teller) write(x *telling) error {
	switch {
	case t.g.json && !x.done:
		return nil
	case t.g.json:
		x.record.Text = x.text.String()
		return json.NewEncoder(t.out).Encode(x.record)
	}
	text := x.held.String()
	x.held.Reset()
	if x.done {
		text += "\n"
	}
	_, err := io.WriteString(t.out, text)
	return err
}

// end ends texts that were not drawn to their ends, where drawing was stopped.
func (t *teller) end() error {
	for i := range t.texts {
		if x := &t.texts[i]; !x.done {
			t.add(x, x.stream.End())
			x.done = true
		}
	}
	if err := t.tell(); err != nil {
		return err
	}
	if !t.g.json && t.first+len(t.texts) < len(t.g.prompts) {
		return t.separate()
	}
	return nil
}
