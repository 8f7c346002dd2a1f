package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of a vocabulary: the first two, or the third instead of them. The last three may be missing.
const (
	vocabFile   = "vocab.json"
	mergesFile  = "merges.txt"
	wholeFile   = "tokenizer.json"
	configFile  = "tokenizer_config.json"
	specialFile = "special_tokens_map.json"
	addedFile   = "added_tokens.json"
)

// maxID bounds the ids that are believed: memory is reserved for all up to the highest.
const maxID = 1<<22 - 1

// Open reads a byte-level vocabulary in Hugging Face's form: vocab.json and merges.txt, or else tokenizer.json, and, where present,
// added tokens and the name of the end-of-text token from added_tokens.json, special_tokens_map.json and tokenizer_config.json. Ids need not be in the order of
// merges. What would give other ids than GPT-2's way of encoding is refused. Errors: the operating system's, and ErrFolder with the
// file and the reason.
func Open(dir string) (Tokenizer, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	f := &folder{dir: dir, files: map[string][]byte{}, ids: map[string]int32{}, special: map[int32]bool{}}
	if err := f.read(); err != nil {
		return nil, err
	}
	b := &bpe{name: filepath.Base(abs), eot: -1, files: f.files}
	load := f.load
	if f.files[vocabFile] == nil {
		load = f.loadWhole
	}
	if err := load(); err != nil {
		return nil, err
	}
	if err := f.config(); err != nil {
		return nil, err
	}
	if b.words, err = f.words(); err != nil {
		return nil, err
	}
	bytes, err := f.bytes(b.words)
	if err != nil {
		return nil, err
	}
	table, err := f.table()
	if err != nil {
		return nil, err
	}
	if len(b.words) == 256 && len(table) == 0 && identity(bytes) && f.eot == "" {
		return byteLevel{b.name}, nil
	}
	if id, ok := f.ids[f.eot]; ok {
		b.eot = id
	}
	m := merges(func(_ string, left, right part) (rank, id int32, ok bool) {
		to, ok := table[[2]int32{left.id, right.id}]
		return to.rank, to.id, ok
	})
	b.piece = func(dst []int32, piece string) []int32 { return m.merge(dst, piece, bytes) }
	return b, nil
}

// folder is the files of a vocabulary while they are read.
type folder struct {
	dir     string
	files   map[string][]byte
	ids     map[string]int32 // by name, as in vocab.json
	special map[int32]bool   // names are texts, not bytes in GPT-2's characters
	pairs   []namedPair      // in the order in which they are merged
	eot     string           // name of the end-of-text token, "" for none
}

// namedPair is two tokens that are merged, and where that is said.
type namedPair struct{ left, right, where string }

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) read() error {
	needed := []string{vocabFile, mergesFile}
	if _, err := os.Stat(f.path(vocabFile)); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(f.path(wholeFile)); err == nil {
			needed = []string{wholeFile}
		}
	}
	for _, name := range append(needed, configFile, specialFile, addedFile) {
		raw, err := os.ReadFile(f.path(name))
		switch {
		case err == nil:
			f.files[name] = raw
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("tokenizer: %w", err)
		case slices.Contains(needed, name):
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}
	return nil
}

// add gives a name an id.
func (f *folder) add(file, name string, id int64) error {
	if id < 0 || id > maxID {
		return badFile(f.path(file), "id %d of token %q: ids must be from 0 to %d", id, name, maxID)
	}
	if had, ok := f.ids[name]; ok && int64(had) != id {
		return badFile(f.path(file), "token %q has ids %d and %d", name, had, id)
	}
	f.ids[name] = int32(id)
	return nil
}

func (f *folder) addAll(file string, ids map[string]int64) error {
	for _, name := range sorted(ids) {
		if err := f.add(file, name, ids[name]); err != nil {
			return err
		}
	}
	return nil
}

// load takes vocab.json and merges.txt: a pair a line.
func (f *folder) load() error {
	var ids map[string]int64
	if err := json.Unmarshal(f.files[vocabFile], &ids); err != nil {
		return badFile(f.path(vocabFile), "want one object of tokens and their ids: %v", err.Error())
	}
	for i, line := range strings.Split(string(f.files[mergesFile]), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || i == 0 && strings.HasPrefix(line, "#version") {
			continue
		}
		where := fmt.Sprintf("%s: line %d", f.path(mergesFile), i+1)
		if err := f.pair(where, line); err != nil {
			return err
		}
	}
	return f.addAll(vocabFile, ids)
}

// pair takes a pair that is written with a space between its tokens.
func (f *folder) pair(where, text string) error {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return badFile(where, "%q: want two tokens with a space between them", text)
	}
	f.pairs = append(f.pairs, namedPair{left, right, where})
	return nil
}

// named is a token as the configuration files write it: its name, or an object with its name as content.
type named string

func (n *named) UnmarshalJSON(raw []byte) error {
	if strings.HasPrefix(string(raw), "{") {
		var o struct{ Content string }
		err := json.Unmarshal(raw, &o)
		*n = named(o.Content)
		return err
	}
	return json.Unmarshal(raw, (*string)(n))
}

// config reads the files that may be missing.
func (f *folder) config() error {
	var added map[string]int64
	var special struct {
		EOS *named `json:"eos_token"`
	}
	var config struct {
		EOS         *named           `json:"eos_token"`
		Class       string           `json:"tokenizer_class"`
		PrefixSpace bool             `json:"add_prefix_space"`
		Added       map[string]named `json:"added_tokens_decoder"`
	}
	for name, to := range map[string]any{addedFile: &added, specialFile: &special, configFile: &config} {
		if raw := f.files[name]; raw != nil {
			if err := json.Unmarshal(raw, to); err != nil {
				return badFile(f.path(name), "%v", err.Error())
			}
		}
	}
	switch strings.TrimSuffix(config.Class, "Fast") {
	case "", "GPT2Tokenizer", "PreTrainedTokenizer", "TokenizersBackend":
	default:
		return badFile(f.path(configFile), "tokenizer_class %s: only GPT2Tokenizer's way of encoding is known", config.Class)
	}
	if config.PrefixSpace {
		return badFile(f.path(configFile), "add_prefix_space is true: a space before each text is not supported, set it to false")
	}
	decoder := map[string]int64{}
	for _, id := range sorted(config.Added) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return badFile(f.path(configFile), "added_tokens_decoder: %q is no id", id)
		}
		decoder[string(config.Added[id])] = n
	}
	if err := errors.Join(f.addSpecial(addedFile, added), f.addSpecial(configFile, decoder)); err != nil {
		return err
	}
	return f.end(config.EOS, special.EOS)
}

// addSpecial gives ids to names that are texts.
func (f *folder) addSpecial(file string, ids map[string]int64) error {
	if err := f.addAll(file, ids); err != nil {
		return err
	}
	for _, id := range ids {
		f.special[int32(id)] = true
	}
	return nil
}

// end finds the end-of-text token: what the configuration names, the first that does, or else GPT-2's.
func (f *folder) end(eos ...*named) error {
	f.eot = endOfText
	for _, e := range eos {
		if e != nil && *e != "" {
			f.eot = string(*e)
			if _, ok := f.ids[f.eot]; !ok {
				return badFile(f.dir, "the end-of-text token %q has no id", f.eot)
			}
			break
		}
	}
	if id, ok := f.ids[f.eot]; ok {
		f.special[id] = true
	} else {
		f.eot = ""
	}
	return nil
}

// words are the tokens' bytes by id.
func (f *folder) words() ([][]byte, error) {
	n := int32(0)
	for _, id := range f.ids {
		n = max(n, id+1)
	}
	words, bytes := make([][]byte, n), charBytes()
	for _, name := range sorted(f.ids) {
		id := f.ids[name]
		word, ok := toBytes(bytes, name)
		if f.special[id] || !ok {
			word, f.special[id] = []byte(name), true
		}
		if words[id] != nil {
			return nil, badFile(f.dir, "id %d is both %q and %q", id, words[id], word)
		}
		words[id] = word
	}
	return words, nil
}

// bytes are the ids of the 256 bytes, which must all be there: any text can be encoded.
func (f *folder) bytes(words [][]byte) (*[256]int32, error) {
	var out [256]int32
	for b, r := range byteChars() {
		id, ok := f.ids[string(r)]
		if !ok {
			return nil, badFile(f.dir, "no token for byte 0x%02x, which is written %q: a byte-level vocabulary has all 256", b, string(r))
		}
		out[b] = id
	}
	return &out, nil
}

func identity(bytes *[256]int32) bool {
	for b, id := range bytes {
		if int(id) != b {
			return false
		}
	}
	return true
}

// merged is what a pair becomes.
type merged struct{ rank, id int32 }

// table is what pairs of ids become. Of a pair that is named twice the first counts.
func (f *folder) table() (map[[2]int32]merged, error) {
	out := make(map[[2]int32]merged, len(f.pairs))
	for rank, p := range f.pairs {
		var ids [3]int32
		for j, name := range []string{p.left, p.right, p.left + p.right} {
			id, ok := f.ids[name]
			if !ok {
				return nil, badFile(p.where, "token %q has no id", name)
			}
			if f.special[id] {
				return nil, badFile(p.where, "%q is a special token, which no text gives", name)
			}
			ids[j] = id
		}
		pair := [2]int32(ids[:2])
		if _, twice := out[pair]; !twice {
			out[pair] = merged{int32(rank), ids[2]}
		}
	}
	return out, nil
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
