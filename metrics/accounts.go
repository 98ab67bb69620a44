// Accounts: the figures of accounts, one set for each name.

package metrics

import (
	"reflect"

	"github.com/freehold-go/freehold/budget"
)

// Accounts returns [budget.AllAccounts] with one AccountStats for each name: accounts of one name
// are added up, as heaps are by [ByName]. Their Soft or MaxBytes is 0, no limit, if one of them has
// none, and their Pressure is the highest. Room, Peak and Problem are those of the first one.
func Accounts() []budget.AccountStats {
	return byName(budget.AllAccounts(), func(st *budget.AccountStats) *string { return &st.Name }, addAccount)
}

// addAccount adds the figures of an account to those of others.
func addAccount(sum *budget.AccountStats, st budget.AccountStats) {
	addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(st))
}
