package refusal

import "bytes"

// Bounds of the texts in a [ServerError], in bytes after escaping. Both are ample for real servers,
// and keep a hostile one from filling a log.
const (
	maxCode    = 64
	maxMessage = 256
)

// ServerError is an error reply: the node understood the frame before it and refused the command.
//
// Its texts come from the network. They are cut to 64 and 256 bytes, the cut marked by "...", and
// hold printable ASCII only; other bytes, and the backslash, appear as \xNN.
type ServerError struct {
	// Code is the reply's code, such as READONLY or ERR.
	Code string
	// Message is the whole text of the reply, with its code.
	Message string
}

// Error returns the message with a prefix saying where it came from.
func (e *ServerError) Error() string {
	return "resp: error reply: " + e.Message
}

// newServerError copies the payload of an error or bulk error reply. It allocates the error and its two texts.
//
// Servers repeat the arguments of unknown commands. Arguments can be secret, so the message ends before them.
func newServerError(payload []byte) *ServerError {
	if i := bytes.Index(payload, echoedArgs); i >= 0 {
		payload = payload[:i]
	}
	return &ServerError{
		Code:    printable(code(payload), maxCode),
		Message: printable(payload, maxMessage),
	}
}

// Beginnings of error replies with a hidden code. Up to Redis 6, and in servers modelled on it, a
// command that failed inside a script is reported as ERR with the code further on. It comes without
// a leading code at all if the script returned the table it got from redis.pcall:
//
//	ERR Error running script (call to f_6c0b…): @user_script:1: @user_script: 1: -READONLY You can't…
//	ERR Error running script (call to f_6c0b…): @user_script:1: WRONGTYPE Operation against…
//	@user_script: 7: -OOM command not allowed…
//
// From Redis 7 on the inner code leads, and the script is named at the end.
var (
	scriptFailed = []byte("ERR Error running script")
	scriptPrefix = []byte("@user_script:")
)

// echoedArgs comes before the arguments of an unknown command, repeated by the server.
var echoedArgs = []byte(", with args beginning with")

// scriptPlace comes before the line number of a script's failure.
var scriptPlace = []byte("user_script:")

// code is the first word of the payload, or, in an old server's report of a failed script, the code
// of the command that failed in it. It is a part of the payload, and may be empty.
func code(payload []byte) []byte {
	if bytes.HasPrefix(payload, scriptFailed) || bytes.HasPrefix(payload, scriptPrefix) {
		if inner := scriptCode(payload); inner != nil {
			return inner
		}
	}
	return firstWord(payload)
}

// scriptCode returns the code after the first place in a script with one right after it, as in "user_script: 7: -OOM",
// or nil. It has to be the first: later ones may be quoted from a command's arguments.
func scriptCode(text []byte) []byte {
	for {
		i := bytes.Index(text, scriptPlace)
		if i < 0 {
			return nil
		}
		text = text[i+len(scriptPlace):]
		rest := bytes.TrimPrefix(text, []byte(" "))
		line := rest
		rest = bytes.TrimLeft(rest, "0123456789")
		if len(rest) == len(line) || !bytes.HasPrefix(rest, []byte(": ")) {
			continue
		}
		rest = bytes.TrimPrefix(rest[len(": "):], []byte("-"))
		if word := firstWord(rest); isCode(word) {
			return word
		}
	}
}

// isCode reports whether a word from the middle of a text is spelled like a code; the shortest have three letters.
func isCode(word []byte) bool {
	for _, c := range word {
		if (c < 'A' || c > 'Z') && c != '_' {
			return false
		}
	}
	return len(word) >= len("ERR")
}

// firstWord returns text up to its first space or line break.
func firstWord(text []byte) []byte {
	for i, c := range text {
		if c == ' ' || c == '\r' || c == '\n' {
			return text[:i:i]
		}
	}
	return text[:len(text):len(text)]
}

// printable copies text, escaping everything that could move a cursor, end a line or forge an
// escape, and cutting the result to limit bytes.
func printable(text []byte, limit int) string {
	const (
		hex = "0123456789abcdef"
		cut = "..."
	)
	var buf [maxMessage]byte
	out := buf[:0]
	fits := 0 // what still leaves room for the mark of a cut
	for _, c := range text {
		if c >= ' ' && c < 0x7f && c != '\\' {
			out = append(out, c)
		} else {
			out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
		}
		if len(out) > limit {
			return string(out[:fits]) + cut
		}
		if len(out) <= limit-len(cut) {
			fits = len(out)
		}
	}
	return string(out)
}
