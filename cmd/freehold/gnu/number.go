// Numbers as bytes in the same order:
//
//	| sign and number of digits before the point | pairs of digits ... | 0 |
//
// The first byte is 0x80 for zero, and 0x81 plus the number of digits for positive numbers. From
// manyDigits on, eight more bytes have that number. A pair of digits is a byte from 1 to 100. Zeros
// at the end are left out. All bytes of a negative number are inverted.

package gnu

import "encoding/binary"

const (
	zeroByte   = 0x80
	manyDigits = 0x7e
)

// appendNumber appends the number at the beginning of text, after blanks, as GNU sort -n reads it.
// Text without a number is zero.
func appendNumber(dst, text []byte) []byte {
	text = text[skipBlanks(text, 0):]
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for len(text) > 0 && text[0] == '0' {
		text = text[1:]
	}
	whole, text := cutDigits(text)
	var fraction []byte
	if len(text) > 0 && text[0] == '.' {
		fraction, _ = cutDigits(text[1:])
	}
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	if len(whole)+len(fraction) == 0 {
		return append(dst, zeroByte)
	}
	from := len(dst)
	if len(whole) < manyDigits {
		dst = append(dst, byte(zeroByte+1+len(whole)))
	} else {
		dst = binary.BigEndian.AppendUint64(append(dst, zeroByte+1+manyDigits), uint64(len(whole)))
	}
	digit := func(i int) byte {
		switch {
		case i < len(whole):
			return whole[i] - '0'
		case i-len(whole) < len(fraction):
			return fraction[i-len(whole)] - '0'
		}
		return 0
	}
	n := len(whole) + len(fraction)
	for n > 0 && digit(n-1) == 0 {
		n--
	}
	for i := 0; i < n; i += 2 {
		dst = append(dst, digit(i)*10+digit(i+1)+1)
	}
	dst = append(dst, 0)
	if negative {
		invert(dst[from:])
	}
	return dst
}

func cutDigits(s []byte) (digits, rest []byte) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
