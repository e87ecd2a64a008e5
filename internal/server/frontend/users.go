package frontend

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Users are the known users, by name. The user of AUTH with a password alone is "default".
type Users map[string]User

// User is a known user.
type User struct {
	sum    [sha256.Size]byte // of the password
	Prefix string            // of the keys named by the user's commands; everything for an operator
}

// everything is the prefix of an operator: such a user names keys as the nodes have them, and only looks at them.
const everything = "*"

// looks holds the commands of operators, beside those allowed before AUTH: looks at locks, and commands about the
// connection.
var looks = map[string]bool{
	"EXISTS": true, "TTL": true, "PTTL": true, "RL.INSPECT": true, "RL.HELD": true,
	"PING": true, "ECHO": true, "SELECT": true, "CLIENT": true, "INFO": true, "COMMAND": true, "CLUSTER": true,
}

// byteOrderMark is put before a text by some editors.
const byteOrderMark = "\xEF\xBB\xBF"

// ReadUsers reads one user a line: a name, a password and, optionally, a prefix for keys, with blanks between. The
// prefix * makes the user an operator (everything). The password is plain, or "sha256:" and the hash in hex. Empty
// lines and lines beginning with # are skipped. Errors have the number of a line, never its content.
func ReadUsers(in io.Reader) (Users, error) {
	users := Users{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(strings.TrimPrefix(lines.Text(), byteOrderMark))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(words) < 2 || len(words) > 3 {
			return nil, fmt.Errorf("line %d has %d words; a user is: name password [prefix]", n, len(words))
		}
		user := User{sum: sha256.Sum256([]byte(words[1]))}
		if digits, hashed := strings.CutPrefix(words[1], "sha256:"); hashed {
			if k, err := hex.Decode(user.sum[:], []byte(digits[:min(len(digits), 2*sha256.Size)])); err != nil || k != sha256.Size || len(digits) != 2*sha256.Size {
				return nil, fmt.Errorf("line %d: sha256: wants %d hex digits after it", n, 2*sha256.Size)
			}
		}
		if len(words) == 3 {
			user.Prefix = words[2]
		}
		if _, twice := users[words[0]]; twice {
			return nil, fmt.Errorf("line %d has the name of an earlier user", n)
		}
		users[words[0]] = user
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("there is no user: a line is: name password [prefix]")
	}
	return users, users.areApart()
}

// areApart refuses two prefixes if one begins with the other: the one user's keys would be the
// other's too. Users with one prefix share their locks.
func (u Users) areApart() error {
	for name, user := range u {
		for other, its := range u {
			if user.Prefix != everything && its.Prefix != everything && user.Prefix != its.Prefix && strings.HasPrefix(user.Prefix, its.Prefix) {
				return fmt.Errorf("the prefix %q of %s begins with the prefix %q of %s, so they would share locks: end each prefix with a mark, such as app:, and leave none empty",
					user.Prefix, name, its.Prefix, other)
			}
		}
	}
	return nil
}

// check returns the user with a name and a password. It takes as long for an unknown name.
func (u *Users) check(name, password string) (user User, ok bool) {
	known := false
	if u != nil {
		user, known = (*u)[name]
	}
	sum := sha256.Sum256([]byte(password))
	return user, subtle.ConstantTimeCompare(sum[:], user.sum[:]) == 1 && known
}
