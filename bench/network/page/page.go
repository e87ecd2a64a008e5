package page

import "io"

// Render is
func Render(w io.Writer, dir string) error { return nil }
