package file

// Disk is the seam to the file system, for tests that inject faults.
type Disk = disk

// OpenDisk is what a tier opens its files with.
func OpenDisk(path string, d Direct) (Disk, error) { return openDisk(path, d) }

// SetOpener makes t open its files with open. Before Reserve.
func (t *Tier) SetOpener(open func(path string, d Direct) (Disk, error)) { t.open = open }
