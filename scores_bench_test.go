package zeroshard_test

import (
	"fmt"
	"testing"

	"zeroshard"
)

// BenchmarkNextToken is a token of a text, of one text and of eight side by side: what generate repeats.
func BenchmarkNextToken(b *testing.B) {
	for _, w := range []struct {
		ranks, stage, texts int
		inference           bool
	}{{1, 0, 1, true}, {1, 0, 8, true}, {4, 3, 1, false}} {
		b.Run(fmt.Sprintf("ranks=%d/stage=%d/texts=%d", w.ranks, w.stage, w.texts), func(b *testing.B) {
			c := preset(b, "tiny")
			c.Ranks, c.Stage, c.Texts, c.Inference, c.Prefetch = w.ranks, w.stage, w.texts, w.inference, 1
			cl, err := zeroshard.Local(ctx, c)
			if err != nil {
				b.Fatal(err)
			}
			defer cl.Close()
			texts := make([][]int32, w.texts)
			b.ResetTimer()
			for b.Loop() {
				for i := range texts {
					if texts[i] = append(texts[i], int32(7*i)); len(texts[i]) > c.Seq {
						texts[i] = texts[i][:1]
					}
				}
				if _, err := cl.Scores(ctx, texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*w.texts)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
