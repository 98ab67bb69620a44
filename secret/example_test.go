package secret_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/freehold-go/freehold/secret"
)

// A key that is made in its memory signs a message.
func Example() {
	keys := secret.NewStore(nil)
	key, err := keys.Make(32, func(b []byte) error { _, err := rand.Read(b); return err })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer key.Destroy()

	var sum []byte
	err = key.Use(func(b []byte) error {
		mac := hmac.New(sha256.New, b)
		mac.Write([]byte("message"))
		sum = mac.Sum(nil)
		return nil
	})
	fmt.Println(len(sum), err)
	// Output: 32 <nil>
}
