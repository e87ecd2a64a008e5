package pack

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"time"
)

// Zip is an archive for Windows.
func Zip(entries []Entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, e := range entries {
		if e.isFolder() {
			continue
		}
		h := &zip.FileHeader{Name: e.Path, Method: zip.Deflate, Modified: at}
		h.SetMode(fs.FileMode(e.Mode))
		w, err := out.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, err
		}
	}
	err := out.Close()
	return b.Bytes(), err
}
