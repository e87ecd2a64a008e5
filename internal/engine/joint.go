package engine

// Joint is the error of several operations that are one: of those before, and of the next.
// They have won if all have. One that was denied decides: the others cannot make up for it.
func Joint(before, next error) error {
	switch {
	case isDenial(before):
		return before
	case before == nil || isDenial(next):
		return next
	}
	return before
}

func isDenial(err error) bool { return err == ErrTaken || err == ErrNotHeld }
