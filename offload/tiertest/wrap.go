package tiertest

import (
	"context"

	"zeroshard/device"
	"zeroshard/offload"
)

// Wrap returns t with a hook that runs before each call: verb is "reserve" (with the zero Key), "put" or "get". A call whose hook returns
// an error is not made and fails with it.
func Wrap(t offload.Tier, hook func(verb string, k offload.Key) error) offload.Tier {
	return &wrapped{Tier: t, hook: hook}
}

type wrapped struct {
	offload.Tier
	hook func(verb string, k offload.Key) error
}

func (w *wrapped) Reserve(ctx context.Context, extents []offload.Extent) error {
	if err := w.hook("reserve", offload.Key{}); err != nil {
		return err
	}
	return w.Tier.Reserve(ctx, extents)
}

func (w *wrapped) Put(ctx context.Context, s device.Stream, k offload.Key, off int64, src device.Buffer) error {
	if err := w.hook("put", k); err != nil {
		return err
	}
	return w.Tier.Put(ctx, s, k, off, src)
}

func (w *wrapped) Get(ctx context.Context, s device.Stream, k offload.Key, off int64, dst device.Buffer) error {
	if err := w.hook("get", k); err != nil {
		return err
	}
	return w.Tier.Get(ctx, s, k, off, dst)
}
