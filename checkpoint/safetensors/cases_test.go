package safetensors_test

import (
	"encoding/binary"
	"strings"
)

// file puts a file together from the JSON of its header and the bytes of its data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// one is a header of one tensor.
func one(fields string) string { return `{"a":{` + fields + `}}` }

const fine = `"dtype":"F32","shape":[2],"data_offsets":[0,8]`

// malformed are files that break one rule each, and a part of what is said of them.
var malformed = []struct {
	name string
	file []byte
	says string
}{
	{"empty file", nil, "first 8 bytes"},
	{"seven bytes", make([]byte, 7), "byte 7: the file ends inside the header's length"},
	{"no header", make([]byte, 8), "0 bytes, at least 2"},
	{"header of one byte", file("{", 0), "at least 2"},
	{"huge header", append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, '{', '}'), "at most 100000000"},
	{"header over the limit", append([]byte{1, 0xe1, 0xf5, 5, 0, 0, 0, 0}, '{', '}'), "100000001 bytes, at most"},
	{"header longer than the file", append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, '{', '}'), "3 bytes, but only 2 follow"},
	{"leading space", file(` {}`, 0), `byte 8: the header begins with " "`},
	{"null", file(`null`, 0), "not with '{'"},
	{"array", file(`[]`, 0), "not with '{'"},
	{"not JSON", file(`{nonsense}`, 0), "byte 9: 'n' where a key in quotes"},
	{"unfinished object", file(`{"a"`, 0), "':' is missing"},
	{"unfinished text", file(`{"a`, 0), "inside a string"},
	{"unfinished escape", file(`{"a\`, 0), "inside a string"},
	{"unfinished array", file(`{"a":{"shape":[1,`, 0), "an integer was expected"},
	{"comma before the end", file(`{"a":{`+fine+`},}`, 8), "a key in quotes was expected"},
	{"two objects", file(`{}{}`, 0), `byte 10: "{" after the end`},
	{"line feed after the object", file("{}\n", 0), "only spaces may follow"},
	{"zero byte after the object", file("{}\x00", 0), "only spaces may follow"},
	{"invalid UTF-8 in a name", file("{\"a\xff\":{"+fine+"}}", 8), "byte 11: the header is not UTF-8"},
	{"half a surrogate pair", file(`{"\ud800":{`+fine+`}}`, 8), "half a surrogate pair"},
	{"two halves of one kind", file(`{"\ud800\ud800":{`+fine+`}}`, 8), "half a surrogate pair"},
	{"bad hexadecimal", file(`{"\u12g4":{`+fine+`}}`, 8), "four hexadecimal digits"},
	{"unknown escape", file(`{"\x41":{`+fine+`}}`, 8), `unknown escape \x`},
	{"control byte", file("{\"a\tb\":{"+fine+"}}", 8), "control byte 0x09"},
	{"control byte after an escape", file("{\"\\n\tb\":{"+fine+"}}", 8), "control byte 0x09"},
	{"name twice", file(`{"a":{`+fine+`},"a":{`+fine+`}}`, 8), `key "a" comes twice`},
	{"name twice, once escaped", file(`{"a":{`+fine+`},"\u0061":{`+fine+`}}`, 8), `key "a" comes twice`},
	{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), "comes twice"},
	{"metadata key twice", file(`{"__metadata__":{"k":"1","k":"2"}}`, 0), `key "k" comes twice`},
	{"metadata that is a number", file(`{"__metadata__":{"k":1}}`, 0), "are strings"},
	{"metadata that is null", file(`{"__metadata__":null}`, 0), "'{'"},
	{"metadata that is an object", file(`{"__metadata__":{"k":{"l":"m"}}}`, 0), "are strings"},
	{"field twice", file(one(fine+`,"dtype":"F32"`), 8), `tensor "a": byte 61: key "dtype" comes twice`},
	{"unknown field", file(one(fine+`,"strides":[1]`), 8), `unknown field "strides"`},
	{"empty name", file(`{"":{`+fine+`}}`, 8), "no name"},
	{"description that is null", file(`{"a":null}`, 0), "'{'"},
	{"description without anything", file(one(``), 0), "dtype is missing"},
	{"no dtype", file(one(`"shape":[2],"data_offsets":[0,8]`), 8), "dtype is missing"},
	{"no shape", file(one(`"dtype":"F32","data_offsets":[0,8]`), 8), "shape is missing"},
	{"no offsets", file(one(`"dtype":"F32","shape":[2]`), 8), "data_offsets is missing"},
	{"unknown dtype", file(one(`"dtype":"F7","shape":[2],"data_offsets":[0,8]`), 8), `unknown element type "F7"`},
	{"dtype in small letters", file(one(`"dtype":"f32","shape":[2],"data_offsets":[0,8]`), 8), `unknown element type "f32"`},
	{"dtype that is null", file(one(`"dtype":null,"shape":[2],"data_offsets":[0,8]`), 8), "an element type in quotes"},
	{"shape that is null", file(one(`"dtype":"F32","shape":null,"data_offsets":[0,8]`), 8), "an array's '['"},
	{"shape that is a number", file(one(`"dtype":"F32","shape":2,"data_offsets":[0,8]`), 8), "an array's '['"},
	{"negative dimension", file(one(`"dtype":"F32","shape":[-2],"data_offsets":[0,8]`), 8), "a negative number"},
	{"fractional dimension", file(one(`"dtype":"F32","shape":[2.0],"data_offsets":[0,8]`), 8), "an integer was expected"},
	{"dimension with an exponent", file(one(`"dtype":"F32","shape":[2e0],"data_offsets":[0,8]`), 8), "an integer was expected"},
	{"dimension with a leading zero", file(one(`"dtype":"F32","shape":[02],"data_offsets":[0,8]`), 8), "leading zero"},
	{"dimension over 63 bits", file(one(`"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]`), 8), "is over 9223372036854775807"},
	{"dimension in quotes", file(one(`"dtype":"F32","shape":["2"],"data_offsets":[0,8]`), 8), "an integer was expected"},
	{"overflowing shape", file(one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]`), 0), "more bytes than an int64 counts"},
	{"overflow behind a zero", file(one(`"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]`), 0), "more bytes than an int64 counts"},
	{"overflow by the element's size", file(one(`"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]`), 0), "more bytes than an int64 counts"},
	{"one offset", file(one(`"dtype":"F32","shape":[2],"data_offsets":[8]`), 8), "1 numbers, must have 2"},
	{"three offsets", file(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8,8]`), 8), "3 numbers, must have 2"},
	{"offsets backwards", file(one(`"dtype":"F32","shape":[2],"data_offsets":[8,0]`), 8), "run backwards"},
	{"more bytes than the shape", file(one(`"dtype":"F32","shape":[1],"data_offsets":[0,8]`), 8), "hold 8 bytes, F32 of shape [1] needs 4"},
	{"fewer bytes than the shape", file(one(`"dtype":"F32","shape":[3],"data_offsets":[0,8]`), 8), "hold 8 bytes, F32 of shape [3] needs 12"},
	{"scalar of two elements", file(one(`"dtype":"F32","shape":[],"data_offsets":[0,8]`), 8), "needs 4"},
	{"hole at the start", file(one(`"dtype":"F32","shape":[2],"data_offsets":[4,12]`), 12), "a hole"},
	{"hole", file(`{"a":{`+fine+`},"b":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}}`, 10), `tensor "b": byte 62: its data begins at 9, but the data before ends at 8: a hole`},
	{"overlap", file(`{"a":{`+fine+`},"b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}}`, 8), "its data begins at 7, inside another"},
	{"same place", file(`{"a":{`+fine+`},"b":{`+fine+`}}`, 8), "inside another"},
	{"nothing inside something", file(`{"a":{`+fine+`},"b":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}`, 8), "inside another"},
	{"data ends early", file(one(fine), 7), "the file ends early: its tensors have 8 bytes, it has 7"},
	{"trailing byte", file(one(fine), 9), "byte 70: 1 bytes follow the last tensor"},
	{"trailing byte without tensors", file(`{}`, 1), "byte 10: 1 bytes follow"},
}

// wellFormed are files at the edge of what is allowed, and the names of their tensors in order of data.
var wellFormed = []struct {
	name  string
	file  []byte
	names string
}{
	{"no tensors", file(`{}`, 0), ""},
	{"spaces after the object", file(`{}      `, 0), ""},
	{"white space inside", file("{\n\t\"a\" : { \"dtype\" :\"F32\" , \"shape\":[ 2 ] ,\r\n\"data_offsets\":[0 , 8] } }", 8), "a"},
	{"empty metadata", file(`{"__metadata__":{}}`, 0), ""},
	{"metadata last", file(`{"a":{`+fine+`},"__metadata__":{"format":"pt","":""}}`, 8), "a"},
	{"scalar", file(one(`"dtype":"F64","shape":[],"data_offsets":[0,8]`), 8), "a"},
	{"no elements", file(one(`"dtype":"F64","shape":[3,0],"data_offsets":[0,0]`), 0), "a"},
	{"dimension 0 and a large one", file(one(`"dtype":"U8","shape":[0,9223372036854775807],"data_offsets":[0,0]`), 0), "a"},
	{"order of data, not of the header", file(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]},"a":{`+fine+`}}`, 10), "a b"},
	{"nothing between two", file(`{"a":{`+fine+`},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},"c":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}}`, 9), "a c b"},
	{"fields in another order", file(one(`"data_offsets":[0,8],"shape":[2],"dtype":"F32"`), 8), "a"},
	{"escaped name", file(`{"\u00e9\n\/\ud83d\ude00":{`+fine+`}}`, 8), "é\n/😀"},
	{"plain name", file(`{"é/😀":{`+fine+`}}`, 8), "é/😀"},
	{"every type", file(everyType()), "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 I16 U16 F16 BF16 I32 U32 F32 I64 U64 F64 C64"},
}

func everyType() (header string, bytes int) {
	var list []string
	for _, t := range []struct {
		size  int
		names string
	}{{1, "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0"}, {2, "I16 U16 F16 BF16"}, {4, "I32 U32 F32"}, {8, "I64 U64 F64 C64"}} {
		for _, name := range strings.Fields(t.names) {
			lo := uint64(bytes)
			bytes += t.size
			list = append(list, `"`+name+`":{"dtype":"`+name+`","shape":[1],"data_offsets":[`+decimal(lo)+`,`+decimal(uint64(bytes))+`]}`)
		}
	}
	return "{" + strings.Join(list, ",") + "}", bytes
}

func decimal(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
