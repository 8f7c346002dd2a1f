package cpu

func paths() []*path { return []*path{portable()} }
