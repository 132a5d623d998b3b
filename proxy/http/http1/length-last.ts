// Works around how Node.js encodes a Content-Disposition that comes after Content-Length.

/**
 * The field lines, with Content-Length moved behind Content-Disposition. Node.js encodes a Content-Disposition that follows it anew (`processHeader` of lib/_http_outgoing.js): it throws for a name
 * in ISO 8859-1, and changes a name in UTF-8. The order of fields with different names has no meaning (RFC 9110, 5.3).
 */
export function lengthLast (lines: string[]): string[] {
  if (!lines.some((text, index) => index % 2 === 0 && isNamed(text, 'content-disposition'))) return lines
  const isLength = (_text: string, index: number): boolean => isNamed(lines[index - index % 2] ?? '', 'content-length')
  return [...lines.filter((text, index) => !isLength(text, index)), ...lines.filter(isLength)]
}

function isNamed (text: string, name: string): boolean {
  return text.length === name.length && text.toLowerCase() === name
}
