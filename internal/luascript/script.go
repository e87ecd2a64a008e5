package luascript

// MaxSource is the size of the longest text that Parse accepts, in bytes.
const MaxSource = 64 << 10

// Script is a text that Parse has accepted, or that stands for another. It does not change, and may be
// used by several goroutines.
type Script struct {
	name  string
	main  block
	slots int
	keys  int // of an alias: how many members of KEYS are keys; 0: all
}

// Name returns the SHA1 of the script in lower-case hex.
func (s *Script) Name() string { return s.name }

// Parse reads the text of a script. The error is a *Refusal. It does not keep source.
func Parse(source []byte) (*Script, error) {
	s := &Script{name: Name(source)}
	if err := s.read(source); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Script) read(source []byte) (err error) {
	defer catch(s.name, &err)
	if len(source) > MaxSource {
		refuse("the text has %d bytes, where %d is the most", len(source), MaxSource)
	}
	s.main, s.slots = parse(string(source))
	return nil
}
