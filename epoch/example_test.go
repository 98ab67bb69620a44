package epoch_test

import (
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/pool"
)

// A writer replaces a value while a reader uses the old one.
func Example() {
	type config struct{ Timeout int }
	var (
		domain  epoch.Domain
		current atomic.Pointer[config]
	)
	current.Store(freehold.Must(freehold.New[config](freehold.Default())))

	reader := domain.Enter()
	seen := current.Load()

	next := freehold.Must(freehold.New[config](freehold.Default()))
	next.Timeout = 30
	old := current.Swap(next) // later readers find next
	ended := domain.Advance()

	fmt.Println("timeout", seen.Timeout, "may be freed:", ended.Passed())
	reader.Leave()
	fmt.Println("the reader has left, may be freed:", ended.Passed())
	freehold.Free(freehold.Default(), old)
	freehold.Free(freehold.Default(), current.Swap(nil))
	// Output:
	// timeout 0 may be freed: false
	// the reader has left, may be freed: true
}

// One guard protects the blocks of every container of the Domain.
func ExampleDomain() {
	var domain epoch.Domain
	names := arena.NewShared(freehold.Default(), &arena.SharedOptions{Domain: &domain})
	defer names.Close()
	users := pool.New[freehold.String](freehold.Default(), &pool.Options{Domain: &domain})
	defer users.Close()

	user := freehold.Must(users.Get())
	*user = freehold.StringOf(freehold.Must(freehold.CloneString(names, "Ada")))

	reader := domain.Enter() // or names.Enter(), or users.Enter()
	users.Retire(user)       // a writer removes the user,
	names.Reset()            // and all names
	fmt.Println(user.Get(), "is still there")
	fmt.Println("retired:", users.Stats().Retired, "user;", names.Stats().Retired > 0)

	reader.Leave()
	users.Trim()
	fmt.Println("retired:", users.Stats().Retired, "users;", names.Stats().Retired > 0)
	// Output:
	// Ada is still there
	// retired: 1 user; true
	// retired: 0 users; false
}
