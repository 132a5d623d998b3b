// What a header line can be made of (RFC 9110, 5.1 and 5.5). Each expression has one way through a text, so that none takes more than its length.

export const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Tab, visible ASCII and the upper half of latin1. No folded lines: what they mean depends on the reader. */
export const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
