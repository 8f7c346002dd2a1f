package data_test

import (
	"testing"

	"zeroshard/data"
)

func TestSetSHA256(t *testing.T) {
	hash := func(train, val data.Tokens) string {
		t.Helper()
		h, err := (&data.Set{Train: train, Val: val}).SHA256(t.Context())
		if err != nil || len(h) != 64 {
			t.Fatal(h, err)
		}
		return h
	}
	long := make(data.Memory, 40000)
	for i := range long {
		long[i] = int32(i * 7 % 50257)
	}
	want := hash(long, data.Memory{1, 2, 3})
	if got := hash(data.Join(data.Part(long, 0, 123), data.Part(long, 123, len(long))), data.Memory{1, 2, 3}); got != want {
		t.Error("it depends on how the tokens are spread over files")
	}
	other := append(data.Memory(nil), long...)
	other[39999]++
	for name, got := range map[string]string{"another last token": hash(other, data.Memory{1, 2, 3}), "another held-out part": hash(long, data.Memory{1, 2, 4}),
		"the same tokens, cut elsewhere": hash(data.Join(long, data.Memory{1}), data.Memory{2, 3})} {
		if got == want {
			t.Errorf("%s has the same hash", name)
		}
	}
}
