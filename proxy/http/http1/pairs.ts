// Node's flat lists of header lines as the pairs that some of its functions want.

/** `[name, value, name, value]` → `[[name, value], [name, value]]` */
export function pairsOf (raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[index * 2] ?? '', raw[index * 2 + 1] ?? ''])
}
