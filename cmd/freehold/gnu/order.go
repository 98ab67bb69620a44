// Package gnu reads GNU sort's flags of order, and makes keys whose bytes have that order in the C
// locale.
package gnu

import (
	"cmp"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Order has the flags that say how to compare lines, for package kong.
type Order struct {
	Key             []string `short:"k" sep:"none" placeholder:"POS" help:"Sort by a part of the line: F[.C][OPTS][,F[.C][OPTS]]. It begins at character C of field F and ends at the second place, or at the end of the line. OPTS are letters of bdfinr. May be repeated. With --fixed: OFFSET:LENGTH."`
	FieldSeparator  []string `short:"t" sep:"none" placeholder:"CHAR" help:"CHAR separates fields. Default: a field begins with blanks. \\0 is NUL."`
	Numeric         Switch   `short:"n" name:"numeric-sort" help:"Compare numbers: an optional minus, digits, an optional fraction."`
	Reverse         Switch   `short:"r" help:"Reverse the order."`
	IgnoreCase      Switch   `short:"f" help:"Compare lower-case letters as upper-case letters."`
	IgnoreBlanks    Switch   `short:"b" name:"ignore-leading-blanks" help:"Ignore blanks at the beginning."`
	Dictionary      Switch   `short:"d" name:"dictionary-order" help:"Compare blanks, letters and digits only."`
	IgnoreUnprinted Switch   `short:"i" name:"ignore-nonprinting" help:"Compare printable characters only."`
}

// OfText reports whether a flag for text is set: any flag except Reverse and Key.
func (o *Order) OfText() bool {
	return bool(o.Numeric || o.IgnoreCase || o.IgnoreBlanks || o.Dictionary || o.IgnoreUnprinted) || len(o.FieldSeparator) > 0
}

// KeyFunc returns the function that makes the keys of lines. Reverse, if set, reverses the order of
// these keys. The function is nil if whole lines are compared by their bytes.
func (o *Order) KeyFunc() (func(dst, line []byte) []byte, error) {
	keys, err := o.keys()
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return keyFunc(keys, bool(o.Reverse)), nil
}

// keys returns the sort keys, or none if whole lines are compared by their bytes.
func (o *Order) keys() ([]key, error) {
	tab := -1
	separator, err := One("-t", o.FieldSeparator)
	if err != nil {
		return nil, err
	}
	if len(o.FieldSeparator) > 0 {
		switch s := separator; {
		case s == `\0`:
			tab = 0
		case len(s) == 1:
			tab = int(s[0])
		case s == "":
			return nil, cli.Usagef("-t: the separator is missing; it is one character")
		default:
			return nil, cli.Usagef("-t %s: the separator is one character", s)
		}
	}
	global := ordering{
		startBlanks: bool(o.IgnoreBlanks), endBlanks: bool(o.IgnoreBlanks), fold: bool(o.IgnoreCase), dictionary: bool(o.Dictionary),
		printable: bool(o.IgnoreUnprinted), numeric: bool(o.Numeric), reverse: bool(o.Reverse),
	}
	var keys []key
	for _, text := range o.Key {
		k, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		if k.ordering == (ordering{}) {
			k.ordering = global
		}
		k.tab = tab
		keys = append(keys, k)
	}
	plain := global
	plain.reverse = false
	if len(keys) == 0 && plain != (ordering{}) {
		keys = append(keys, key{ordering: global, tab: tab, toField: endOfLine})
	}
	for _, k := range keys {
		if k.numeric && (k.dictionary || k.printable) {
			return nil, cli.Usagef("options -%s are incompatible", cmp.Or(map[bool]string{true: "dn"}[k.dictionary], "in"))
		}
	}
	return keys, nil
}
