package pages

import "os"

// Alignment is what every mapping's address is a multiple of.
const Alignment = 4096

// RoundUp is bytes in whole pages; 0 where that is negative or overflows an int.
func RoundUp(bytes int64) int {
	page := int64(max(os.Getpagesize(), Alignment))
	n := bytes + page - 1
	if bytes < 0 || n < bytes || int64(int(n)) != n {
		return 0
	}
	return int(n / page * page)
}

// hugePage is the size from which a mapping may have huge pages: that of amd64, and of arm64 with small pages of 4 KiB.
const hugePage = 2 << 20
