package auto_test

import (
	"fmt"

	"github.com/freehold-go/freehold/budget"
	_ "github.com/freehold-go/freehold/budget/auto"
)

// The import alone has started a budget.
func Example() {
	st := budget.Running().Stats()
	fmt.Println("within a limit:", st.Limit > 0)
	fmt.Println("Go gets less:", st.UserLimit || st.GoLimit < st.Limit)
	// Output:
	// within a limit: true
	// Go gets less: true
}
