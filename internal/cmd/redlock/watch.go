package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// watched is a value made from some files. Each use checks the files, and reads them again if they have changed: a
// program that renews certificates gives no notice.
type watched[T any] struct {
	files []string
	read  func() (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	value  T
	stamp  string // of the last read files, with or without success
	looked time.Time
}

// lookAgain is the least time between two looks at the files.
const lookAgain = time.Second

// watch reads the files for the first time.
func watch[T any](log *slog.Logger, read func() (T, error), files ...string) (w *watched[T], err error) {
	w = &watched[T]{files: files, read: read, log: log, looked: time.Now()}
	w.stamp = w.present()
	w.value, err = read()
	return w, err
}

// present identifies the present files: a replaced one has another time.
func (w *watched[T]) present() string {
	var text strings.Builder
	for _, file := range w.files {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprint(&text, info.ModTime().UnixNano(), " ", info.Size(), " ", info.Mode(), "\n")
		} else {
			fmt.Fprintln(&text, err)
		}
	}
	return text.String()
}

// get returns the value of the present files, or the value of before if they cannot be read: of a certificate and its
// key one may be new and the other not yet. The stamp is taken before the files are read, so changes meanwhile are read
// again.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < lookAgain {
		return w.value
	}
	w.looked = time.Now()
	if stamp := w.present(); stamp != w.stamp {
		w.stamp = stamp
		value, err := w.read()
		if err != nil {
			w.log.Warn("redlock: files have changed and cannot be used; the earlier ones stay in use", "error", err)
			return w.value
		}
		w.value = value
		w.log.Info("redlock: files have changed, and the new ones are in use", "files", w.files)
	}
	return w.value
}

// prepare reads the files, and returns a function to put their value in use.
func (w *watched[T]) prepare() (use func(), err error) {
	stamp := w.present()
	value, err := w.read()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.value, w.stamp = value, stamp
	}, err
}
