package pages

// advise has nothing to ask for.
func advise([]byte) {}
