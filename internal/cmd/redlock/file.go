package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxFile bounds a file of settings, users, scripts or certificates.
const maxFile = 16 << 20

// line is a setting in the config file.
type line struct {
	number int
	text   string
}

// byteOrderMark is put before a text by some editors.
var byteOrderMark = []byte("\xEF\xBB\xBF")

// readFile takes the settings not given as a flag or a variable from the config file.
func (s *settings) readFile() error {
	lines, err := s.linesOf(s.config)
	s.lines = lines
	for name, line := range lines {
		if row := findShared(name, s.command); !s.given[name] && row.isOf(s.command) {
			_ = row.set(s, line.text) // it was checked
		}
	}
	return err
}

// linesOf reads the settings of a file, and checks those of other commands too.
func (s *settings) linesOf(path string) (map[string]line, error) {
	text, info, err := []byte(s.env.file), fs.FileInfo(nil), error(nil)
	if len(text) == 0 {
		text, info, err = readWhole(path)
	}
	if err != nil {
		return nil, usage("-config: %v", err)
	}
	s.text = string(text)
	lines, scratch := map[string]line{}, &settings{fleet: newFleet()}
	for i, text := range bytes.Split(bytes.TrimPrefix(text, byteOrderMark), []byte("\n")) {
		words := strings.TrimSpace(string(text))
		if words == "" || words[0] == '#' {
			continue
		}
		if err := s.readLine(line{i + 1, words}, lines, scratch); err != nil {
			return nil, usage("%s, line %d: %v", path, i+1, err)
		}
	}
	if info != nil && hasPassword(lines["nodes"].text+";"+lines["next-nodes"].text) {
		if err := checkSecret(info); err != nil {
			return nil, usage("-config: %s has passwords, and %v", path, err)
		}
	}
	return lines, nil
}

// readLine reads one line into lines. Its errors do not quote the value, which may be a password.
func (s *settings) readLine(l line, lines map[string]line, scratch *settings) error {
	end := strings.IndexAny(l.text, " \t=")
	if end < 0 {
		end = len(l.text)
	}
	name, text := l.text[:end], strings.TrimSpace(l.text[end:])
	row := findShared(name, s.command)
	switch earlier, twice := lines[name]; {
	case row == nil || row.notInFile:
		return unknown(fmt.Sprintf("%.64q", name), name, s.command)
	case strings.HasPrefix(text, "="):
		return fmt.Errorf("write %q and its value with a space between, not =", name)
	case twice:
		return fmt.Errorf("%s is given twice, first in line %d", name, earlier.number)
	case text == "":
		return fmt.Errorf("%s has no value", name)
	case len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0]:
		return fmt.Errorf("write the value of %s without quotes", name)
	}
	if err := row.set(scratch, text); err != nil {
		return fmt.Errorf("%s has a wrong value: %w", name, err)
	}
	if nodes, is := row.at(scratch).(*nodeList); is {
		if err := nodes.check(); err != nil {
			return fmt.Errorf("%s has a wrong value: %w", name, err)
		}
	}
	lines[name] = line{l.number, text}
	return nil
}

// readWhole reads a file, and returns with its text the system's description of that very file.
func readWhole(path string) ([]byte, fs.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, info, err
}

// readSecret reads a file, and refuses it if other users of the machine may read it.
func readSecret(path string) ([]byte, error) {
	text, info, err := readWhole(path)
	if err != nil {
		return nil, err
	}
	if err := checkSecret(info); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
