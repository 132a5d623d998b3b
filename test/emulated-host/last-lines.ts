// The end of a long text, for people.

/** The last lines of a text, at most `count`. */
export function lastLines (text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
