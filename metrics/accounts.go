// Accounts: the figures of accounts, one set for each name.

package metrics

import "github.com/freehold-go/freehold/budget"

// Accounts returns [budget.AllAccounts] with one AccountStats for each name: accounts of one name
// are added up, as heaps are by [ByName]. Their Soft or Hard is 0, no limit, if one of them has
// none, and their Pressure is the highest. Room, Peak and Problem are those of the first one.
func Accounts() []budget.AccountStats {
	return byName(budget.AllAccounts(), func(st *budget.AccountStats) *string { return &st.Name }, addAccount)
}

// addAccount adds the figures of an account to those of others.
func addAccount(sum *budget.AccountStats, st budget.AccountStats) {
	sum.Soft, sum.Hard = addLimits(sum.Soft, st.Soft), addLimits(sum.Hard, st.Hard)
	sum.Used += st.Used
	sum.Reserved += st.Reserved
	sum.Committed += st.Committed
	sum.Live += st.Live
	sum.LiveBytes += st.LiveBytes
	sum.Refusals += st.Refusals
	sum.Evicted += st.Evicted
	sum.Pressure.Level = max(sum.Pressure.Level, st.Pressure.Level)
	sum.Pressure.Wanted += st.Pressure.Wanted
	sum.Rounds += st.Rounds
	sum.Late += st.Late
	sum.Panics += st.Panics
}
