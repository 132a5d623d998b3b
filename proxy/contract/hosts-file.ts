// Reads the text of /etc/hosts.
import { isIP } from 'node:net'

/** The names in lower case, and their addresses in the order of the lines. */
export function readHosts (text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.split('#', 1)[0]?.trim().split(/\s+/) ?? []
    if (isIP(address) === 0) continue
    for (const name of new Set(names.map((each) => each.toLowerCase()))) {
      const addresses = found.get(name)
      if (addresses === undefined) found.set(name, [address])
      else addresses.push(address)
    }
  }
  return found
}
