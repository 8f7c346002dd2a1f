package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/safetensors"
	"zeroshard/data/tokenizer"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
	"zeroshard/train"
)

func newExport() *cobra.Command {
	out, dtype, name, shard := "", "f32", "", size(5_000_000_000)
	c := &cobra.Command{Use: "export DIR --hf OUT", Short: "Write a step's weights as a Hugging Face GPT-2 folder", Args: operands("a run's or a step's folder")}
	c.Flags().StringVar(&out, "hf", "", "the folder (`OUT`) to write, which must not exist or be empty")
	c.Flags().StringVar(&dtype, "dtype", dtype, "element type of the weights: `f32|f16|bf16`, rounded to nearest, ties to even")
	c.Flags().Var(&shard, "shard-bytes", "split the weights into files of at most `BYTES`, with an index")
	c.Flags().StringVar(&name, "tokenizer", "", "`NAME`: bytes, gpt2, or a folder with vocab.json and merges.txt; none: write no tokenizer; without, what the run was trained with")
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "" {
			return usagef("export needs --hf OUT, the folder to write")
		}
		d, ok := map[string]safetensors.DType{"f32": safetensors.F32, "f16": safetensors.F16, "bf16": safetensors.BF16}[strings.ToLower(dtype)]
		if !ok {
			return usagef("--dtype %q: use f32, f16 or bf16", dtype)
		}
		s, err := openSource(args[0])
		if err != nil {
			return err
		}
		defer s.close()
		e := hf.Export{Config: s.config, DType: d, ShardBytes: int64(shard)}
		var words tokenizer.Tokenizer
		if name != "none" {
			words, err = s.words(name)
		}
		switch {
		case name == "none":
		case err == nil:
			e.Files = func(dir string) error { return tokenizer.Save(dir, words) }
		case name != "":
			return err
		case s.records():
			return fmt.Errorf("%w; none: export without a tokenizer", err)
		default:
			fmt.Fprintf(c.ErrOrStderr(), "no tokenizer files are written: %v\n", err)
		}
		if id, ok := s.end(words); ok {
			end := int(id)
			e.EndOfText = &end
		}
		if err := hf.Write(out, e, s.read); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s is a Hugging Face GPT-2 folder: %s parameters, %s\n", out, train.Thousands(int64(parameters(s.config))), d)
		return nil
	}
	return c
}

func parameters(c gpt.Config) int {
	m, err := gpt.New(c)
	if err != nil {
		return 0
	}
	return m.Params()
}

func newImport() *cobra.Command {
	out := ""
	c := &cobra.Command{Use: "import HF --out DIR", Short: "Make a saved step of the weights in a Hugging Face GPT-2 folder", Args: operands("a Hugging Face folder")}
	c.Flags().StringVar(&out, "out", "", "the run folder (`DIR`) to make; its step 0 holds the weights, without optimizer state")
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "" {
			return usagef("import needs --out DIR, the run folder to make")
		}
		if err := (&landing{dir: out}).look(); err != nil {
			return err
		}
		s, err := openSource(args[0])
		if err != nil {
			return err
		}
		defer s.close()
		if s.saved != nil {
			return usagef("%s holds steps of this program already", args[0])
		}
		l, err := land(out)
		if err != nil {
			return err
		}
		if err := l.end(importWeights(s, out, c.ErrOrStderr())); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s holds the weights of %s as step 0: train --init-from %s starts from them\n", out, args[0], quote(out))
		return nil
	}
	return c
}

// importWeights saves what s reads, tensor by tensor: memory is the buffers of one file.
func importWeights(s *source, out string, warnings io.Writer) error {
	model, err := gpt.New(s.config)
	if err != nil {
		return err
	}
	text, err := json.Marshal(savedModel{"gpt", s.name(), s.config, s.endOfText})
	if err != nil {
		return err
	}
	m := checkpoint.Manifest{Model: text, Settings: json.RawMessage("{}"), World: checkpoint.World{Ranks: 1, Replicas: 1, Strategy: "import"}}
	words, err := keepWords(s.tokenizer, "")
	if err = words.tell(warnings, s.dir, err); err != nil {
		return err
	}
	if err := words.put(out); err != nil {
		return err
	}
	m.Data.Tokenizer, m.Data.TokenizerSHA256 = words.name, words.sha256
	src := &importing{read: s.read}
	for _, f := range model.Flats() {
		for _, p := range f.Params {
			m.Params = append(m.Params, checkpoint.Param{Name: p.Name, Shape: p.Shape, NoDecay: p.NoDecay})
			src.pieces = append(src.pieces, checkpoint.Piece{Param: p.Name, State: checkpoint.Weights, Len: p.Len()})
		}
	}
	return checkpoint.NewStore(checkpoint.OS{}, filepath.Join(out, checkpoint.Folder)).Save(m, []checkpoint.Source{src})
}

// importing is a checkpoint.Source of weights that are read from elsewhere.
type importing struct {
	read   func(name string, lo int, dst []float32) error
	pieces []checkpoint.Piece
}

func (i *importing) Pieces() []checkpoint.Piece { return append([]checkpoint.Piece(nil), i.pieces...) }

func (i *importing) Read(p checkpoint.Piece, lo int, dst []float32) error {
	return i.read(p.Param, p.From+lo, dst)
}
