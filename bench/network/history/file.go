package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// Record is a line of a file: one of these.
type Record struct {
	Setup  *Setup  `json:",omitempty"`
	Call   *Call   `json:",omitempty"`
	Extend *Extend `json:",omitempty"`
	Break  *Break  `json:",omitempty"`
	Node   *Node   `json:",omitempty"`
	Pause  *Pause  `json:",omitempty"`
	End    *End    `json:",omitempty"`
	Fault  *Fault  `json:",omitempty"`
	Seen   *Seen   `json:",omitempty"`
	Dials  *Dials  `json:",omitempty"`
}

// File is what a process writes, each record at once: what does not end as it should leaves all before that.
type File struct {
	mu      sync.Mutex
	file    *os.File
	encoder *json.Encoder
}

// suffix is that of the files of a run.
const suffix = ".history"

// Create begins a file in the folder of a run.
func Create(dir, name string) (*File, error) {
	file, err := os.Create(filepath.Join(dir, name+suffix))
	if err != nil {
		return nil, err
	}
	return &File{file: file, encoder: json.NewEncoder(file)}, nil
}

// Add writes a record.
func (f *File) Add(r Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.encoder.Encode(r)
}

// Close ends the file.
func (f *File) Close() error { return f.file.Close() }

// Read reads all files of a run.
func Read(dir string) (*History, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no history in %s", dir)
	}
	h := &History{}
	for _, name := range names {
		if err := h.read(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, e := range h.Ends {
		log, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("client%d.log", e.Client)))
		e.Log = bytes.Count(log, []byte("\n"))
		nodes := map[string]int{}
		for _, node := range regexp.MustCompile(` node=\S+`).FindAllString(string(log), -1) {
			nodes[node]++
			e.LogOfNode = max(e.LogOfNode, nodes[node])
		}
	}
	slices.SortFunc(h.Calls, func(a, b *Call) int { return cmp.Compare(a.Asked, b.Asked) })
	slices.SortFunc(h.Faults, func(a, b *Fault) int { return cmp.Compare(a.From, b.From) })
	return h, nil
}

func (h *History) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var e Record
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // a process that was killed leaves a part of a line
			return nil
		} else if err != nil {
			return err
		}
		if e.Setup != nil {
			h.Setup = *e.Setup
		}
		add(&h.Calls, e.Call)
		add(&h.Extends, e.Extend)
		add(&h.Breaks, e.Break)
		add(&h.Nodes, e.Node)
		add(&h.Pauses, e.Pause)
		add(&h.Ends, e.End)
		add(&h.Faults, e.Fault)
		add(&h.Seen, e.Seen)
		add(&h.Dials, e.Dials)
	}
}

func add[T any](list *[]*T, record *T) {
	if record != nil {
		*list = append(*list, record)
	}
}
