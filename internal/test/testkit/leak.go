package testkit

import (
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
)

// Goroutines returns the stacks of the goroutines in the client's code.
func Goroutines() string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "redlock/conn.") || strings.Contains(stack, "redlock/internal/client/engine.") ||
			strings.Contains(stack, "redlock/internal/client.(*housekeeper)") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// warm opens what the runtime keeps open after the first socket.
var warm = sync.OnceFunc(func() {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
})

// Descriptors is the number of this process's open files, or 0 where the system does not show it.
func Descriptors() int {
	warm()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
