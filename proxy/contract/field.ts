// Characters of a header line (RFC 9110, 5.1 and 5.5). Each expression can match a text in only one way, so that matching takes linear time.

export const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Tab, visible ASCII and the upper half of latin1. No folded lines: readers disagree about their meaning. */
export const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
