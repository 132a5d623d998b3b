// Versions of programs, as they print them.

/** The first version in a text, of the form 1.2 or 1.2.3. */
export function versionIn (text: string): string | undefined {
  return /\d{1,6}\.\d{1,6}(?:\.\d{1,6})?/.exec(text)?.[0]
}

/** Whether a version is older than another, number by number. */
export function isOlder (version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number))
  for (const [index, number] of (b ?? []).entries()) {
    const other = a?.[index] ?? 0
    if (other !== number) return other < number
  }
  return false
}
