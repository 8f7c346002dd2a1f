// Package models is the contract between a model and the engine: units that read flat parameters, and what one call may touch.
// models/gpt is the GPT. A unit sees full, aligned views and cannot tell the stage, the world size or the tier.
package models
