package report

import "zeroshard/memory"

// KindInfo is how a kind of bytes is shown: under the category and in the colour in which PyTorch's memory profiler shows the same, so that
// people recognise it. Where two kinds are one category there, the second has a lighter shade.
type KindInfo struct {
	Name     string `json:"name"`
	Category string `json:"category"`
	Light    string `json:"light"` // colour on a light page
	Dark     string `json:"dark"`  // on a dark page: the same hue, lighter, to be told from the ground
}

// kinds in the order in which they are stacked: what lives all the time lies at the bottom.
func kinds() []KindInfo {
	return []KindInfo{
		{memory.Parameter.String(), "PARAMETER", "#006400", "#2c8f3c"},                 // darkgreen
		{memory.Optimizer.String(), "OPTIMIZER_STATE", "#daa520", "#daa520"},           // goldenrod
		{memory.GradientShard.String(), "GRADIENT", "#6f7fe0", "#8f9cf0"},              // mediumblue, lighter
		{memory.Gradient.String(), "GRADIENT", "#0000cd", "#4a5be8"},                   // mediumblue
		{memory.Gathered.String(), "PARAMETER", "#5aa860", "#7cc983"},                  // darkgreen, lighter
		{memory.Activation.String(), "ACTIVATION", "#ff0000", "#f04848"},               // red
		{memory.Cache.String(), "ACTIVATION", "#ff8a80", "#ff9e94"},                    // red, lighter
		{memory.Workspace.String(), "TEMPORARY", "#9370db", "#a88be8"},                 // mediumpurple
		{memory.Staging.String(), "TEMPORARY", "#c5b3ec", "#d0c2f2"},                   // mediumpurple, lighter
		{memory.Communication.String(), "outside the allocator", "#808080", "#9a9a9a"}, // grey: unknown
	}
}
