package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// link is the keeper's end of the two pipes between it and the job. The job closes its end when it ends, also by
// SIGKILL. A nil link leads nowhere: there is one process.
//
// The job sends signals and questions. The keeper sends an answer to each question, and its last word. The job asks one
// question at a time, so neither pipe fills while one of the two is stopped, and no answer is older than its question.
type link struct {
	in    *bufio.Reader
	out   io.Writer
	asked chan byte // the number of the question without an answer
}

func newLink(in io.Reader, out io.Writer) *link {
	return &link{bufio.NewReader(in), out, make(chan byte, 1)}
}

// arguments reads the first message of the job: the arguments of redlock run, and the text of its -config file. They
// may be long, and hold any bytes but 0.
func (l *link) arguments() ([]string, error) {
	head, err := l.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(strings.TrimSuffix(head, "\n"))
	if err != nil {
		return nil, err
	}
	text := make([]byte, size)
	_, err = io.ReadFull(l.in, text)
	return strings.Split(string(text), "\x00"), err
}

// sendArguments sends the message read by arguments.
func sendArguments(w io.Writer, args []string) error {
	text := strings.Join(args, "\x00")
	_, err := fmt.Fprintf(w, "%d\n%s", len(text), text)
	return err
}

// firstQuestion is the byte of question 0. Smaller ones are signals.
const firstQuestion = 128

// listen passes on the job's signals, by number, and its questions, until the job ends.
func (l *link) listen(got chan<- syscall.Signal, jobEnded chan<- struct{}) {
	defer close(jobEnded)
	for {
		number, err := l.in.ReadByte()
		switch {
		case err != nil:
			return
		case number >= firstQuestion:
			l.asked <- number
		default:
			got <- syscall.Signal(number)
		}
	}
}

// questions returns the channel asked, or nil.
func (l *link) questions() <-chan byte {
	if l == nil {
		return nil
	}
	return l.asked
}

// Reports of the keeper: the lock is held for a time, the program is being ended within a time, the run is over. If the
// time passes without another report, the job ends the program.
const (
	newsHeld   = "held"
	newsEnding = "ending"
	newsOver   = "over"
)

// news is a report of the keeper.
type news struct {
	kind   string
	number byte           // held, ending: of the question
	left   time.Duration  // held, ending
	status int            // over: the exit status
	signal syscall.Signal // over: the signal to die of, or 0
}

func (l *link) report(n news) {
	if l != nil {
		_, _ = fmt.Fprintln(l.out, n.kind, n.number, int64(n.left), n.status, int(n.signal))
	}
}

// readNews reads the reports of a keeper until it ends.
func readNews(r io.Reader, heard chan<- news) {
	defer close(heard)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var n news
		if _, err := fmt.Sscan(lines.Text(), &n.kind, &n.number, (*int64)(&n.left), &n.status, (*int)(&n.signal)); err == nil {
			heard <- n
		}
	}
}
