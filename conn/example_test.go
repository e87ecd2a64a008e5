package conn_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
)

// Addresses of a configuration are checked before it is used. No error and no String shows a password.
func ExampleParseAddresses() {
	all, err := conn.ParseAddresses([]string{"10.0.0.1:6379", "rediss://app:sesame@10.0.0.2/3?persistent=yes"})
	if err != nil {
		log.Fatal(err)
	}
	var second conn.Address = all[1]
	user, password := second.Login()
	fmt.Println(second, second.TLS, second.Database, second.Persistent, user, len(password), second.Equal(all[0]))
	_, err = conn.ParseAddresses([]string{"10.0.0.1", "10.0.0.1:6379"})
	fmt.Println(err)
	// Output:
	// 10.0.0.2:6379 true 3 true app 6 false
	// nodes 0 and 1 are both 10.0.0.1:6379: a node must not vote twice
}

// Why a node is down is in Stats, in the errors of New and Ready, and in each QuorumError.
func ExampleError() {
	client, err := redlock.New(redlock.Config{Nodes: []string{"127.0.0.1:1"}}) // where no server is
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	err = client.Ready(now)
	var down *conn.Error
	if errors.As(err, &down) {
		fmt.Println(down.Op, down.Addr, down.Reason() != "")
	}
	fmt.Println(who(err))
	// Output:
	// dial 127.0.0.1:1 true
	// none: the client dials again
}

// who is who can mend the cause of an error of a node.
func who(err error) string {
	is := func(any ...error) bool {
		for _, e := range any {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case is(conn.ErrAuth, conn.ErrForbidden, conn.ErrUntrusted, conn.ErrRejected):
		return "the owner of passwords, access lists and certificates"
	case is(conn.ErrNotMaster, conn.ErrCluster, conn.ErrSentinel, conn.ErrSameServer, conn.ErrNotRESP, conn.ErrNotTLS, conn.ErrRefused):
		return "the author of Config.Nodes"
	case is(conn.ErrUnscripted, conn.ErrTooOld, conn.ErrNoRunID):
		return "the operator: it needs another server"
	case is(conn.ErrQuarantined):
		return "time: the node votes again after MaxTTL"
	case is(conn.ErrStalled, conn.ErrFull, conn.ErrUnsolicited, conn.ErrOversized):
		return "the operator: something between client and server is slow, or broken"
	case is(conn.ErrClosed):
		return "the program: it has closed the client"
	case is(conn.ErrNotSent, conn.ErrDown):
	}
	return "none: the client dials again"
}
