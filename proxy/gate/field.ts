// What a header line can be made of (RFC 9110, 5.1 and 5.5).

const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
// Tab, visible ASCII and the upper half of latin1. No folded lines: what they mean depends on the reader.
const VALUE = '[\\t\\x20-\\x7e\\x80-\\xff]*'

export const FIELD_NAME = new RegExp(`^${NAME}$`)
export const FIELD_VALUE = new RegExp(`^${VALUE}$`)
/** Name and value are captured, the value with white space at its end. */
export const FIELD_LINE = new RegExp(`^(${NAME}):[\\t ]*(${VALUE})$`)
