// A trap of Node.js in the order of an answer's fields.

/**
 * The field lines, with Content-Length behind a Content-Disposition. One that comes after it Node.js encodes anew (`processHeader` of lib/_http_outgoing.js): it throws over a name
 * in ISO 8859-1, and makes another one of a name in UTF-8. The order of fields with different names says nothing (RFC 9110, 5.3).
 */
export function lengthLast (lines: string[]): string[] {
  if (!lines.some((text, index) => index % 2 === 0 && isNamed(text, 'content-disposition'))) return lines
  const isLength = (_text: string, index: number): boolean => isNamed(lines[index - index % 2] ?? '', 'content-length')
  return [...lines.filter((text, index) => !isLength(text, index)), ...lines.filter(isLength)]
}

function isNamed (text: string, name: string): boolean {
  return text.length === name.length && text.toLowerCase() === name
}
