// Turns Node's flat lists of header lines into the pairs that some of its functions take.

/** `[name, value, name, value]` → `[[name, value], [name, value]]` */
export function pairsOf (raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[index * 2] ?? '', raw[index * 2 + 1] ?? ''])
}
