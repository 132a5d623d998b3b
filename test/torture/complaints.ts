// Where everything that is found goes: what must not be, as it is seen.
const found: string[] = []

export function complain (text: string): void {
  found.push(text)
  say(`FOUND: ${text}`)
}

export function complaints (): readonly string[] {
  return found
}

export function say (text: string): void {
  console.log(`${(performance.now() / 1000).toFixed(1).padStart(7)} ${text}`)
}
